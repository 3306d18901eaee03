//! What the API's document says of one operation. Each endpoint's file says it of its own, beside its handler.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use weir_shared::domain::describe::{self, Reading};
use weir_shared::domain::validation::ValidationError;

/// Reads a body as the handler does; the text says what was read.
pub type Read = fn(&Value) -> Result<Reading, ValidationError>;

/// Which operations are read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Scrape,
    Batch,
    Crawl,
    Map,
    Search,
    Monitor,
    Extract,
    Agent,
    Browser,
    Interact,
    Team,
    Mcp,
    Console,
    V1,
    Service,
}

impl Group {
    /// In the order of the document.
    pub const ALL: &'static [Self] = &[
        Self::Scrape,
        Self::Batch,
        Self::Crawl,
        Self::Map,
        Self::Search,
        Self::Monitor,
        Self::Extract,
        Self::Agent,
        Self::Browser,
        Self::Interact,
        Self::Team,
        Self::Mcp,
        Self::Console,
        Self::V1,
        Self::Service,
    ];

    /// Its name and what it is for.
    pub const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Scrape => ("Scrape", "One page now: markdown, HTML, links, images, screenshots."),
            Self::Batch => {
                ("Batch scrape", "Many pages in the background, read page by page, by WebSocket or webhook.")
            }
            Self::Crawl => ("Crawl", "A site's pages, found by its links and sitemaps."),
            Self::Map => ("Map", "The addresses of a site."),
            Self::Search => ("Search", "The web, its news and its pictures, with the pages of the hits."),
            Self::Monitor => ("Monitors", "Pages, crawls and searches that are looked at by a schedule."),
            Self::Extract => ("Extract", "Data out of many pages, read by a language model and put together."),
            Self::Agent => ("Agent", "Answers that an agent looks for by itself, step by step."),
            Self::Browser => ("Browser sessions", "A browser of one's own, by code or over the DevTools protocol."),
            Self::Interact => ("Interact", "Going on from a scrape, by code or by a prompt."),
            Self::Team => ("Team", "What the team did, used and may use. These calls cost nothing."),
            Self::Mcp => ("Model Context Protocol", "The same as tools for language models."),
            Self::Console => (
                "Console",
                "What the pages below /console ask for. A cookie is needed, and `X-Weir-CSRF` to change anything.",
            ),
            Self::V1 => ("Version 1", "The same under the names of before, for clients that call /v1."),
            Self::Service => ("Service", "Health, figures and this document. No key is needed."),
        }
    }
}

/// A body that the operation takes.
pub struct Body {
    /// Name of its schema.
    pub name: &'static str,
    pub read: Read,
    /// Whether the operation does without one.
    pub optional: bool,
    /// It is the part `options` of a form, beside the part `file`.
    pub is_in_form: bool,
    /// Bodies with what they are for. The first holds nothing that could be left out.
    pub examples: Vec<(&'static str, Value)>,
}

impl Body {
    /// Its schema, as its reader has it.
    pub fn schema(&self) -> Value {
        let least = self.examples.first().map_or_else(|| json!({}), |(_, body)| body.clone());
        describe::body_schema(&self.read, &least)
    }
}

/// A body that is read by its type.
pub struct Typed {
    /// Name of its schema.
    pub name: &'static str,
    pub schema: fn() -> Schema,
    pub example: Value,
}

/// Makes the schema of a type.
pub type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// One answer.
pub struct ResponseDoc {
    pub status: u16,
    pub text: &'static str,
    /// Content type and schema; `None`: nothing is said of the body.
    pub content: Option<(&'static str, MakeSchema)>,
    pub example: Option<Value>,
}

/// A route as the document has it.
pub struct Operation {
    pub id: &'static str,
    pub group: Group,
    pub summary: &'static str,
    pub text: &'static str,
    /// No key is asked for.
    pub public: bool,
    /// The path's id may be any text.
    pub any_id: bool,
    /// Parameters of query and header; those of the path are known from it.
    pub parameters: Vec<Value>,
    pub body: Option<Body>,
    /// JSON that it takes instead of a form.
    pub other_body: Option<Body>,
    /// JSON that is read by its type.
    pub typed: Option<Typed>,
    /// The body is a file as it is.
    pub is_bytes: bool,
    pub answers: Vec<ResponseDoc>,
    /// Statuses of the errors.
    pub errors: Vec<u16>,
}

impl Operation {
    /// An operation for callers with a key.
    pub fn new(group: Group, id: &'static str, summary: &'static str, text: &'static str) -> Self {
        let (parameters, answers) = (Vec::new(), Vec::new());
        // No key, too many calls, a failure of ours, the database away.
        let errors =
            if group == Group::Console { vec![400, 401, 403, 404, 500, 503] } else { vec![401, 429, 500, 503] };
        Self {
            id,
            group,
            summary,
            text,
            public: false,
            any_id: false,
            parameters,
            body: None,
            other_body: None,
            typed: None,
            is_bytes: false,
            answers,
            errors,
        }
    }

    /// An operation for anybody.
    pub fn public(id: &'static str, summary: &'static str, text: &'static str) -> Self {
        Self { public: true, errors: Vec::new(), ..Self::new(Group::Service, id, summary, text) }
    }

    /// Nobody needs to be signed in.
    pub fn no_session(self) -> Self {
        Self { public: true, ..self }
    }

    /// A JSON body that is read by its type.
    pub fn typed_body<T: JsonSchema>(self, name: &'static str, example: Value) -> Self {
        let schema = || {
            let settings = SchemaSettings::draft2020_12().for_deserialize().with(|settings| {
                settings.inline_subschemas = true;
                settings.meta_schema = None;
            });
            settings.into_generator().into_root_schema_for::<T>()
        };
        Self { typed: Some(Typed { name, schema, example }), ..self }.errors(&[400, 403, 408, 413])
    }

    pub fn group(self, group: Group) -> Self {
        Self { group, ..self }
    }

    /// The same operation under another name.
    pub fn named(self, group: Group, id: &'static str) -> Self {
        Self { group, id, ..self }
    }

    /// The answer is the same whatever the path's id is.
    pub fn any_id(self) -> Self {
        Self { any_id: true, ..self }
    }

    /// The JSON body, by the reader that the handler calls.
    pub fn body(mut self, name: &'static str, read: Read, examples: Vec<(&'static str, Value)>) -> Self {
        self.body = Some(Body { name, read, optional: false, is_in_form: false, examples });
        self.errors(&[400, 408, 413])
    }

    /// A form with a file and options, which are read so.
    pub fn form(self, name: &'static str, read: Read, examples: Vec<(&'static str, Value)>) -> Self {
        let mut operation = self.body(name, read, examples);
        if let Some(body) = &mut operation.body {
            body.is_in_form = true;
        }
        operation
    }

    /// JSON that is as good as the form.
    pub fn or_body(self, name: &'static str, read: Read, examples: Vec<(&'static str, Value)>) -> Self {
        Self { other_body: Some(Body { name, read, optional: false, is_in_form: false, examples }), ..self }
    }

    /// The body is a file as it is.
    pub fn bytes(self) -> Self {
        Self { is_bytes: true, ..self }
    }

    /// Every body that it takes by a reader.
    pub fn bodies(&self) -> impl Iterator<Item = &Body> {
        self.body.iter().chain(&self.other_body)
    }

    /// The same where no body is as good as an empty one.
    pub fn optional_body(self, name: &'static str, read: Read, examples: Vec<(&'static str, Value)>) -> Self {
        let mut operation = self.body(name, read, examples);
        if let Some(body) = &mut operation.body {
            body.optional = true;
        }
        operation
    }

    /// A parameter of the query.
    pub fn query(self, name: &str, schema: Value, text: &str) -> Self {
        self.parameter("query", name, schema, text)
    }

    /// A header of the request.
    pub fn header(self, name: &str, schema: Value, text: &str) -> Self {
        self.parameter("header", name, schema, text)
    }

    fn parameter(mut self, place: &str, name: &str, schema: Value, text: &str) -> Self {
        self.parameters.push(json!({"name": name, "in": place, "description": text, "schema": schema}));
        self
    }

    /// The answer of success: JSON of this type.
    pub fn answer<T: JsonSchema>(self, text: &'static str) -> Self {
        self.answer_with(200, text, "application/json", T::json_schema)
    }

    /// An answer of another status or kind.
    pub fn answer_with(mut self, status: u16, text: &'static str, kind: &'static str, schema: MakeSchema) -> Self {
        self.answers.push(ResponseDoc { status, text, content: Some((kind, schema)), example: None });
        self
    }

    /// An answer that is text.
    pub fn text_answer(self, text: &'static str, kind: &'static str) -> Self {
        self.answer_with(200, text, kind, |_| schemars::json_schema!({"type": "string"}))
    }

    /// An answer whose body is not of this document.
    pub fn bare_answer(mut self, status: u16, text: &'static str) -> Self {
        self.answers.push(ResponseDoc { status, text, content: None, example: None });
        self
    }

    /// What the answer before may look like.
    pub fn example(mut self, body: Value) -> Self {
        if let Some(answer) = self.answers.last_mut() {
            answer.example = Some(body);
        }
        self
    }

    /// Further statuses of errors.
    pub fn errors(mut self, statuses: &[u16]) -> Self {
        self.errors.extend_from_slice(statuses);
        self.errors.sort_unstable();
        self.errors.dedup();
        self
    }
}
