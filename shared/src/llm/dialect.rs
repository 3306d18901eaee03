//! What of the chat interface an endpoint does not take. Endpoints refuse with 400 what they do not know: OpenAI's reasoning
//! models `max_tokens` and a temperature, others the schema of an answer, a longer answer than their model gives, or a turn
//! of the system. What a refusal names is left out, and what went well without it is asked so from then on.

/// How an endpoint is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    /// The longest answer is called `max_completion_tokens`: what the model thinks counts, too.
    pub counts_thinking: bool,
    /// The longest answer is the model's own.
    pub own_length: bool,
    /// The temperature is the model's own.
    pub own_temperature: bool,
    /// The rules stand before the first turn: there is no turn of the system.
    pub has_no_system: bool,
    /// It knows no schemas, but reads words.
    pub has_no_format: bool,
}

/// Names of what is asked about a longest answer, and the two of them that take each other's place.
const LENGTHS: [&str; 4] = [OLD_LENGTH, NEW_LENGTH, "max_new_tokens", "in the completion"];
const OLD_LENGTH: &str = "max_tokens";
const NEW_LENGTH: &str = "max_completion_tokens";

/// Whether a refusal says that it is of the schema. Others may be of what was asked.
pub(super) fn is_of_format(refusal: &str) -> bool {
    let text = refusal.to_ascii_lowercase();
    ["response_format", "json_schema", "grammar"].into_iter().any(|name| text.contains(name))
}

impl Dialect {
    /// What to try after a refusal with this text; `None`: nothing else would help.
    pub(super) fn after(self, refusal: &str) -> Option<Self> {
        let text = refusal.to_ascii_lowercase();
        let names = |word: &str| text.contains(word);
        let without_format = (!self.has_no_format).then_some(Self { has_no_format: true, ..self });
        // A schema has names of its own in it.
        if is_of_format(&text) && !self.has_no_format {
            return without_format;
        }
        let is_renamed = names(OLD_LENGTH) && names(NEW_LENGTH) && !names("too large");
        if is_renamed && !self.counts_thinking {
            Some(Self { counts_thinking: true, ..self })
        } else if LENGTHS.into_iter().any(names) && !self.own_length {
            Some(Self { own_length: true, ..self })
        } else if names("temperature") && !self.own_temperature {
            Some(Self { own_temperature: true, ..self })
        } else if names("role") && (names("system") || names("alternate")) && !self.has_no_system {
            Some(Self { has_no_system: true, ..self })
        } else {
            without_format
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_refusal_names_is_left_out() {
        let limit = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        let temperature = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.";
        let long = "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's context is 8192 tokens.";
        let plain = Dialect::default();
        let thinks = Dialect { counts_thinking: true, ..plain };
        let words = Dialect { has_no_format: true, ..plain };
        let short = Dialect { own_length: true, ..plain };
        let calm = Dialect { own_temperature: true, ..plain };
        let no_system = Dialect { has_no_system: true, ..plain };
        let old = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (3000 in the messages, \
            6000 in the completion).";
        for (dialect, refusal, after) in [
            (plain, limit, Some(thinks)),
            (plain, temperature, Some(Dialect { own_temperature: true, ..plain })),
            (thinks, temperature, Some(Dialect { own_temperature: true, ..thinks })),
            (plain, "This response_format type is unavailable now", Some(words)),
            (plain, "", Some(words)),
            (plain, long, Some(short)),
            (plain, old, Some(short)),
            (plain, "max_tokens: 6000 > 4096, which is the maximum allowed number of output tokens for x", Some(short)),
            (plain, "`inputs` tokens + `max_new_tokens` must be <= 8193", Some(short)),
            (plain, "max_tokens is not supported, use max_completion_tokens", Some(thinks)),
            (plain, "`temperature` is deprecated for this model.", Some(calm)),
            (plain, "System role not supported", Some(no_system)),
            (
                plain,
                "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
                Some(no_system),
            ),
            (plain, "Conversation roles must alternate user/assistant/user/assistant/...", Some(no_system)),
            (plain, "Invalid schema for response_format 'data': In context=('properties', 'temperature')", Some(words)),
            (plain, "Failed to parse grammar", Some(words)),
            (Dialect { own_length: true, ..words }, long, None),
            (words, limit, Some(Dialect { counts_thinking: true, ..words })),
            (thinks, limit, Some(Dialect { own_length: true, ..thinks })),
        ] {
            assert_eq!(dialect.after(refusal), after, "{dialect:?} {refusal}");
        }
    }
}
