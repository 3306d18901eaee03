//! `traceparent` of W3C Trace Context: a place in a trace, as it travels in headers and rows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A span that others can be below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TraceParent {
    pub trace: u128,
    pub span: u64,
    /// `false`: its trace is not kept, so nothing below it is sent either.
    pub is_sampled: bool,
}

impl FromStr for TraceParent {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "not a traceparent";
        let is_hex = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let mut parts = text.trim().split('-');
        let (Some(version), Some(trace), Some(span), Some(flags)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(WRONG);
        };
        let lengths = [version.len(), trace.len(), span.len(), flags.len()];
        if lengths != [2, 32, 16, 2] || ![version, trace, span, flags].into_iter().all(is_hex) || version == "ff" {
            return Err(WRONG);
        }
        // Later versions may have more to say, this one may not.
        if version == "00" && parts.next().is_some() {
            return Err(WRONG);
        }
        let trace = u128::from_str_radix(trace, 16).map_err(|_| WRONG)?;
        let span = u64::from_str_radix(span, 16).map_err(|_| WRONG)?;
        let flags = u8::from_str_radix(flags, 16).map_err(|_| WRONG)?;
        if trace == 0 || span == 0 {
            return Err(WRONG);
        }
        Ok(Self { trace, span, is_sampled: flags & 1 == 1 })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

impl From<TraceParent> for String {
    fn from(parent: TraceParent) -> Self {
        parent.to_string()
    }
}

impl TryFrom<String> for TraceParent {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_parent_is_read_as_it_is_written_and_nothing_else_is() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent: TraceParent = text.parse().unwrap();
        assert_eq!((parent.to_string().as_str(), parent.is_sampled), (text, true));
        assert!(!text.replace("-01", "-00").parse::<TraceParent>().unwrap().is_sampled);
        assert!(text.replacen("00", "01", 1).replace("-01", "-01-more").parse::<TraceParent>().is_ok());
        for wrong in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert!(wrong.parse::<TraceParent>().is_err(), "{wrong}");
        }
    }
}
