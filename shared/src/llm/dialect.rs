//! What of the chat interface an endpoint does not take. Endpoints refuse with 400 what they do not know: OpenAI's reasoning
//! models `max_tokens` and a temperature, others the schema of an answer. What a refusal names is left out, and what went
//! well without it is asked so from then on.

/// How an endpoint is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    /// The longest answer is called `max_completion_tokens`: what the model thinks counts, too.
    pub counts_thinking: bool,
    /// The temperature is the model's own.
    pub own_temperature: bool,
    /// It knows no schemas, but reads words.
    pub has_no_format: bool,
}

/// Whether a refusal says that it is of the schema. Others may be of what was asked.
pub(super) fn is_of_format(refusal: &str) -> bool {
    ["response_format", "json_schema"].into_iter().any(|name| refusal.contains(name))
}

impl Dialect {
    /// What to try after a refusal with this text; `None`: nothing else would help.
    pub(super) fn after(self, refusal: &str) -> Option<Self> {
        let text = refusal.to_ascii_lowercase();
        let is_of_limit = text.contains("'max_tokens'") && text.contains("'max_completion_tokens' instead");
        if is_of_limit && !self.counts_thinking {
            Some(Self { counts_thinking: true, ..self })
        } else if text.contains("'temperature'") && !self.own_temperature {
            Some(Self { own_temperature: true, ..self })
        } else if !self.has_no_format {
            Some(Self { has_no_format: true, ..self })
        } else {
            None
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
        for (dialect, refusal, after) in [
            (plain, limit, Some(thinks)),
            (plain, temperature, Some(Dialect { own_temperature: true, ..plain })),
            (thinks, temperature, Some(Dialect { own_temperature: true, ..thinks })),
            (plain, "This response_format type is unavailable now", Some(words)),
            (plain, "", Some(words)),
            (plain, long, Some(words)),
            (words, long, None),
            (words, limit, Some(Dialect { counts_thinking: true, ..words })),
            (Dialect { counts_thinking: true, ..words }, limit, None),
        ] {
            assert_eq!(dialect.after(refusal), after, "{dialect:?} {refusal}");
        }
    }
}
