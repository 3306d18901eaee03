//! Fields of a document: instructions, and what they last came to. Only what a field came to is text; a `HYPERLINK`
//! makes a link of it.

use crate::html::field_link;

#[derive(Debug, Default)]
struct Field {
    instruction: String,
    has_result: bool,
    link: Option<String>,
}

/// The fields that are open.
#[derive(Debug, Default)]
pub struct Fields(Vec<Field>);

impl Fields {
    /// A field starts.
    pub fn begin(&mut self, most: usize) {
        if self.0.len() < most {
            self.0.push(Field::default());
        }
    }

    /// More of its instruction.
    pub fn instruction(&mut self, text: &str) {
        if let Some(field) = self.0.last_mut()
            && !field.has_result
        {
            field.instruction.push_str(text);
        }
    }

    /// What it came to follows.
    pub fn separate(&mut self) {
        if let Some(field) = self.0.last_mut() {
            field.has_result = true;
            field.link = field_link(&field.instruction);
        }
    }

    /// It ends.
    pub fn end(&mut self) {
        self.0.pop();
    }

    /// Whether text is part of an instruction.
    pub fn is_in_code(&self) -> bool {
        self.0.iter().any(|field| !field.has_result)
    }

    /// Where text leads to.
    pub fn link(&self) -> Option<String> {
        self.0.iter().rev().find_map(|field| field.link.clone())
    }
}
