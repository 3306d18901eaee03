//! What an agent's model is told it can do, and how its words become an action.

use serde_json::{Value, json};

/// Longest texts of an action that are kept, bytes.
const WORDS: usize = 2_000;
/// Longest answer, bytes.
const ANSWER: usize = 40_000;

/// What the model wants to do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    Search { query: String },
    Map { url: String, search: Option<String> },
    Scrape { urls: Vec<String> },
    Ask { urls: Vec<String>, question: String },
    Interact { url: String, task: String },
    Finish(Finish),
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finish {
    pub answer: String,
    pub data: Option<Value>,
    pub sources: Vec<String>,
    pub success: bool,
}

impl Action {
    /// How the model is told again of what it did.
    pub fn told(&self) -> Value {
        match self {
            Self::Search { query } => json!({"tool": "search", "query": query}),
            Self::Map { url, search } => json!({"tool": "map", "url": url, "query": search}),
            Self::Scrape { urls } => json!({"tool": "scrape", "urls": urls}),
            Self::Ask { urls, question } => json!({"tool": "ask", "urls": urls, "question": question}),
            Self::Interact { url, task } => json!({"tool": "interact", "url": url, "task": task}),
            Self::Finish(_) => json!({"tool": "finish"}),
        }
    }
}

/// The rules of a turn, with the tools that there are.
pub(super) fn rules(has_search: bool, has_browser: bool, is_chat: bool) -> String {
    let mut rules = "Find what the person asks for, step by step: each turn you answer with exactly one action. `thought` \
        says in a sentence why, `tool` names the action; fields that it does not use are null or left out. Plan first: take \
        the shortest way.\nTools:\n"
        .to_owned();
    if has_search {
        rules.push_str("search: `query`; searches the web.\n");
    }
    rules.push_str(
        "map: `url` of a site, `query` to order by; lists the addresses of the site.\n\
         scrape: `urls`, up to 5; shows the pages with their links.\n\
         ask: `urls`, up to 30, and `question`; each page is asked by itself, and only the answers come back. Take it for \
         many pages or long ones.\n",
    );
    if has_browser {
        rules.push_str(
            "interact: `url` and `task`; a browser on that page fills in, clicks and reads as the task says in words. Take \
             it only where scraping does not do: forms, logins, buttons. What it did is not done again: where the outcome is \
             unknown, look before you do anything once more.\n",
        );
    }
    rules.push_str(
        "finish: `answer` in words, `data` where the person gave a schema, `sources`: addresses of the pages that it comes \
         from; `success` false with the reason in `answer` if it cannot be done.\n\
         Open only addresses that the person gave, or that a search, map or page has shown, exactly as they were shown. When \
         something is refused or fails, try another way. Finish as soon as you know, and never do more than is asked.",
    );
    if is_chat {
        rules.push_str(" The person wants an answer in words.");
    }
    rules
}

/// The JSON schema of an answer.
pub(super) fn schema(has_search: bool, has_browser: bool) -> Value {
    let mut tools = vec!["map", "scrape", "ask", "finish"];
    if has_search {
        tools.push("search");
    }
    if has_browser {
        tools.push("interact");
    }
    let text = json!({"type": ["string", "null"]});
    let texts = json!({"type": ["array", "null"], "items": {"type": "string"}});
    json!({"type": "object", "required": ["thought", "tool"], "properties": {
        "thought": {"type": "string"}, "tool": {"type": "string", "enum": tools}, "query": text, "url": text,
        "urls": texts, "question": text, "task": text, "answer": text, "data": {}, "sources": texts,
        "success": {"type": ["boolean", "null"]}}})
}

/// The texts of a field: a list, or one alone; of things with an address, that.
fn texts(field: &Value) -> Vec<String> {
    let list = field.as_array().map_or(std::slice::from_ref(field), Vec::as_slice);
    list.iter().filter_map(|item| item.as_str().or_else(|| item["url"].as_str())).map(str::to_owned).collect()
}

/// Reads an answer; the error is for the model. Small models do not hold to the schema to the letter.
pub(super) fn read(said: &Value) -> Result<Action, String> {
    let tool = said["tool"].as_str().ok_or("Your answer does not fit the schema: `tool` is not a text.")?;
    let tool = tool.trim().to_ascii_lowercase();
    let text = |field: &str| {
        let text = said[field].as_str().map(|text| super::cut(text.trim(), WORDS).to_owned());
        text.filter(|text| !text.is_empty())
    };
    let need = |field: &str| text(field).ok_or_else(|| format!("The tool `{tool}` needs `{field}`."));
    let addresses = || {
        let urls: Vec<String> = texts(&said["urls"]).into_iter().chain(texts(&said["url"])).collect();
        if urls.is_empty() { Err(format!("The tool `{tool}` needs `urls`.")) } else { Ok(urls) }
    };
    let success = || match &said["success"] {
        Value::Null => Ok(true),
        Value::Bool(success) => Ok(*success),
        Value::String(word) if word.trim().eq_ignore_ascii_case("true") => Ok(true),
        Value::String(word) if word.trim().eq_ignore_ascii_case("false") => Ok(false),
        _ => Err("Your answer does not fit the schema: `success` is true or false.".to_owned()),
    };
    Ok(match tool.as_str() {
        "search" => Action::Search { query: need("query")? },
        "map" => Action::Map { url: need("url")?, search: text("query") },
        "scrape" => Action::Scrape { urls: addresses()? },
        "ask" => Action::Ask { urls: addresses()?, question: need("question")? },
        "interact" => Action::Interact { url: need("url")?, task: need("task")? },
        "finish" => Action::Finish(Finish {
            answer: super::cut(said["answer"].as_str().unwrap_or_default().trim(), ANSWER).to_owned(),
            data: said.get("data").filter(|data| !data.is_null()).cloned(),
            sources: texts(&said["sources"]),
            success: success()?,
        }),
        other => return Err(format!("There is no tool `{}`.", super::cut(other, 50))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_becomes_an_action_or_says_what_it_lacks() {
        for (said, words) in [
            (json!({"tool": "dance"}), "no tool `dance`"),
            (json!({"tool": "search"}), "needs `query`"),
            (json!({"tool": "scrape", "urls": []}), "needs `urls`"),
            (json!({"tool": "ask", "urls": ["https://a.test"]}), "needs `question`"),
            (json!({"tool": "interact", "url": "https://a.test", "task": " "}), "needs `task`"),
            (json!({"tool": 5}), "does not fit"),
            (json!({"tool": "finish", "answer": "x", "success": "no"}), "does not fit"),
        ] {
            let error = read(&said).expect_err("it lacks something");
            assert!(error.contains(words), "{said}: {error}");
        }
        let one = read(&json!({"thought": "x", "tool": "scrape", "url": "https://a.test", "urls": null}));
        assert_eq!(one, Ok(Action::Scrape { urls: vec!["https://a.test".to_owned()] }));
        for urls in [json!("https://a.test"), json!([{"url": "https://a.test"}])] {
            let loose = read(&json!({"tool": " Scrape", "urls": urls}));
            assert_eq!(loose, Ok(Action::Scrape { urls: vec!["https://a.test".to_owned()] }));
        }
        let loose =
            read(&json!({"tool": "finish", "answer": "no", "success": "False", "sources": {"url": "https://a.test"}}));
        let finish =
            Finish { answer: "no".to_owned(), data: None, sources: vec!["https://a.test".to_owned()], success: false };
        assert_eq!(loose, Ok(Action::Finish(finish)));
        let end = read(&json!({"tool": "finish", "answer": "42", "data": null}));
        let finish = Finish { answer: "42".to_owned(), data: None, sources: Vec::new(), success: true };
        assert_eq!(end, Ok(Action::Finish(finish)));
    }
}
