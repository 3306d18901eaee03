//! Whether an answer looks like a refusal of readers like us: then another proxy may bring the page.

/// Texts that stand in pages which ask whether their reader is human.
const CHALLENGES: &[&str] = &[
    "_cf_chl_opt",
    "cf-browser-verification",
    "challenge-platform",
    "attention required! | cloudflare",
    "captcha-delivery.com",
    "px-captcha",
    "_incapsula_resource",
    "awswafintegration",
    "verify you are human",
    "are you a robot",
    "unusual traffic",
];
/// Where those are looked for, bytes, and how little such a page says, characters of text.
const LOOK_WITHIN: usize = 64 << 10;
const LITTLE: usize = 1_500;

/// Whether an answer looks like a refusal of readers like us.
pub fn is_refusal(status: u16, html: &str, text_chars: usize) -> bool {
    if matches!(status, 403 | 429) {
        return true;
    }
    if text_chars > LITTLE || !(status == 503 || status == 401 || status < 300) {
        return false;
    }
    let start = html[..html.floor_char_boundary(LOOK_WITHIN)].to_ascii_lowercase();
    CHALLENGES.iter().any(|mark| memchr::memmem::find(start.as_bytes(), mark.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_by_status_or_by_what_they_ask() {
        for (status, html, chars, expected) in [
            (403, "", 0, true),
            (429, "<p>slow down", 10, true),
            (200, "<script>window._cf_chl_opt={}</script>", 40, true),
            (503, "Are you a ROBOT?", 16, true),
            (200, "Are you a robot? A film.", 4_000, false),
            (200, "<p>Hello", 5, false),
            (404, "g-recaptcha", 11, false),
            (500, "oops", 4, false),
        ] {
            assert_eq!(is_refusal(status, html, chars), expected, "{status} {html}");
        }
    }
}
