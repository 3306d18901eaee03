//! What runs within a line: emphasis, links, images, formulas, line breaks.
//!
//! A span is opened by noting where it starts and closed by putting marks around what has come since, so that marks
//! never enclose bare whitespace and empty spans leave nothing.

use html5ever::{LocalName, local_name};

use super::super::tree::Tag;
use super::super::{images, marks};
use super::{AtEnd, MAX_OUTPUT, Prefix, Span, SpanKind, Step, Writer, inline};

impl Writer<'_> {
    /// Opens an element that changes how the text in it is written; `None`: it is not one of those.
    pub(super) fn open_span(&mut self, i: usize, tag: Tag) -> Option<Step> {
        let kind = match tag {
            Tag::B | Tag::Strong if self.heading > 0 || self.strong > 0 => SpanKind::None,
            Tag::B | Tag::Strong => {
                self.strong += 1;
                SpanKind::Strong
            }
            Tag::I if self.dom.end(i) == i + 1 => return Some(Step::Over),
            Tag::I | Tag::Em | Tag::Cite | Tag::Var if self.em > 0 => SpanKind::None,
            Tag::I | Tag::Em | Tag::Cite | Tag::Var => {
                self.em += 1;
                SpanKind::Em
            }
            Tag::Del | Tag::S | Tag::Strike => SpanKind::Del,
            Tag::Code | Tag::Kbd | Tag::Samp | Tag::Tt if self.code > 0 => SpanKind::None,
            Tag::Code | Tag::Kbd | Tag::Samp | Tag::Tt => {
                // Code that holds links or blocks is not one code span.
                let is_plain =
                    (i + 1..self.dom.end(i)).all(|j| !self.dom.tag(j).is_block() && self.dom.tag(j) != Tag::Br);
                self.code += u32::from(is_plain);
                if is_plain { SpanKind::Code } else { SpanKind::None }
            }
            Tag::Sub => SpanKind::Small("sub"),
            Tag::Sup => SpanKind::Small("sup"),
            Tag::Q => {
                self.line.push('"');
                SpanKind::Small("q")
            }
            _ => return None,
        };
        Some(self.span(kind))
    }

    pub(super) fn span(&mut self, kind: SpanKind) -> Step {
        self.spans.push(Span { kind, start: self.line.len() });
        Step::Closing(AtEnd::Span)
    }

    pub(super) fn close_span(&mut self) {
        let Some(span) = self.spans.pop() else { return };
        self.full |= self.line.len() > MAX_OUTPUT;
        match span.kind {
            SpanKind::Strong => self.strong -= 1,
            SpanKind::Em => self.em -= 1,
            SpanKind::Code => self.code -= 1,
            _ => {}
        }
        let mut span = span;
        self.wrap(&mut span, true);
    }

    /// Puts a span's marks around what it holds in the current line.
    pub(super) fn wrap(&mut self, span: &mut Span, last: bool) {
        let start = span.start.min(self.line.len());
        let lead = start + (self.line.len() - start - self.line[start..].trim_start().len());
        let tail = lead + self.line[lead..].trim_end().len();
        if lead >= tail {
            return;
        }
        match &mut span.kind {
            SpanKind::Strong => self.mark("**", lead, tail),
            SpanKind::Em => self.mark("*", lead, tail),
            SpanKind::Del => self.mark("~~", lead, tail),
            SpanKind::Code => {
                let rest = self.line.split_off(tail);
                let code = self.line.split_off(lead);
                inline::push_code_span(&mut self.line, &code);
                self.line.push_str(&rest);
            }
            SpanKind::Small("q") => {
                if last {
                    self.line.truncate(tail);
                    self.line.push('"');
                }
            }
            SpanKind::Small(name) => {
                let text = &self.line[lead..tail];
                let short = text.len() <= 8 && !text.contains(['[', '<', '*', '\n']);
                let after_word = self.line[..lead]
                    .chars()
                    .next_back()
                    .is_some_and(|c| c.is_alphanumeric() || matches!(c, ')' | ']'));
                if short && after_word && lead == start {
                    let close = format!("</{name}>");
                    self.line.insert_str(tail, &close);
                    self.line.insert_str(lead, &format!("<{name}>"));
                }
            }
            SpanKind::Link { url, used, worded, anchor } => {
                let text = &self.line[lead..tail];
                if *anchor && text.chars().count() <= 2 {
                    self.line.truncate(start);
                    return;
                }
                let Some(url) = url.as_deref() else { return };
                if *used || (*worded && !last && is_image_only(text)) {
                    return;
                }
                let mut text = if text.contains('\n') {
                    text.split('\n').map(|l| l.trim_end_matches(['\\', ' '])).collect::<Vec<_>>().join(" ")
                } else {
                    text.to_owned()
                };
                if let Some(balanced) = inline::balance_brackets(&text) {
                    text = balanced;
                }
                let rest = self.line.split_off(tail);
                self.line.truncate(lead);
                if self.line.ends_with('!') {
                    self.line.pop();
                    self.line.push_str("\\!");
                }
                self.line.push('[');
                self.line.push_str(&text);
                self.line.push(']');
                inline::push_destination(&mut self.line, url);
                self.line.push_str(&rest);
                *used = true;
            }
            SpanKind::None => {}
        }
    }

    fn mark(&mut self, mark: &'static str, lead: usize, tail: usize) {
        if self.code > 0 {
            return;
        }
        if self.last_mark == Some((lead, mark)) && lead >= mark.len() {
            // `**a****b**` would not parse: one stretch instead.
            self.line.insert_str(tail, mark);
            self.line.replace_range(lead - mark.len()..lead, "");
            self.last_mark = Some((tail, mark));
            return;
        }
        self.line.insert_str(tail, mark);
        self.line.insert_str(lead, mark);
        self.last_mark = Some((tail + 2 * mark.len(), mark));
    }

    pub(super) fn link(&mut self, i: usize) -> Step {
        let dom = self.dom;
        let href = dom.attr(i, &local_name!("href"));
        let fragment = href.is_some_and(|h| h.starts_with('#'));
        if fragment {
            let text = dom.text_of(i);
            let low = text.trim().to_ascii_lowercase();
            if low.starts_with("skip to ") || low.starts_with("jump to content") || low.starts_with("zum inhalt") {
                return Step::Over;
            }
        }
        if href.is_some() && marks::is_permalink(dom, self.job.addresses, i) {
            return Step::Over;
        }
        // A heading that links to itself is a heading.
        if self.heading > 0 && marks::is_own_heading(dom, self.job.addresses, i) {
            self.span(SpanKind::None);
            return Step::Closing(AtEnd::Span);
        }
        let url = if self.code > 0 { None } else { href.and_then(|h| self.job.addresses.resolve_link(h)) };
        let worded = url.is_some() && (i..dom.end(i)).any(|j| !dom.text(j).trim().is_empty());
        let anchor = fragment && self.heading > 0;
        self.span(SpanKind::Link { url, used: false, worded, anchor })
    }

    pub(super) fn image(&mut self, i: usize) {
        let dom = self.dom;
        let pixel = |name: &LocalName| dom.attr(i, name).is_some_and(|v| matches!(v.trim(), "0" | "1" | "1px" | "0px"));
        if pixel(&local_name!("width")) || pixel(&local_name!("height")) {
            return;
        }
        let Some(source) = images::best_source(dom, i) else { return };
        let mut alt = String::new();
        inline::push_raw(&mut alt, dom.attr(i, &local_name!("alt")).unwrap_or("").trim());
        let mut alt = alt.trim().to_owned();
        if let Some(balanced) = inline::balance_brackets(&alt) {
            alt = balanced;
        }
        let inline_data = source.trim_start().get(..5).is_some_and(|s| s.eq_ignore_ascii_case("data:"));
        if inline_data && !self.job.remove_base64_images {
            self.push_image(&alt, source.trim());
        } else if inline_data {
            // A picture that is only a placeholder for a script to fill in says nothing.
            if !alt.is_empty() || source.len() > 400 {
                self.line_image(&alt);
            }
        } else if let Some(url) = self.job.addresses.resolve(source) {
            self.push_image(&alt, &url);
        }
    }

    fn push_image(&mut self, alt: &str, url: &str) {
        if self.code > 0 {
            return;
        }
        self.line.push_str("![");
        self.line.push_str(alt);
        self.line.push(']');
        inline::push_destination(&mut self.line, url);
    }

    fn line_image(&mut self, alt: &str) {
        self.line.push_str("![");
        self.line.push_str(alt);
        self.line.push_str("](<Base64-Image-Removed>)");
    }

    pub(super) fn checkbox(&mut self, i: usize) {
        if self.dom.attr(i, &local_name!("type")) != Some("checkbox") || !self.line.trim().is_empty() {
            return;
        }
        if matches!(self.prefixes.last(), Some(Prefix::Item { used: false, .. })) {
            let checked = self.dom.attr(i, &local_name!("checked")).is_some();
            self.line.clear();
            self.line.push_str(if checked { "[x] " } else { "[ ] " });
        }
    }

    pub(super) fn math_element(&mut self, i: usize) {
        let dom = self.dom;
        let tex = (i..dom.end(i)).find(|&j| {
            dom.element(j).is_some_and(|e| &*e.name.local == "annotation")
                && dom.attr_named(j, "encoding").is_some_and(|e| e.contains("tex"))
        });
        let display = dom.attr_named(i, "display") == Some("block");
        match tex {
            Some(j) => self.math(&dom.text_of(j), display),
            None => match dom.attr_named(i, "alttext") {
                Some(alt) => self.math(alt, display),
                None => {
                    let text = dom.text_of(i);
                    self.text(&text);
                }
            },
        }
    }

    pub(super) fn math(&mut self, tex: &str, display: bool) {
        let tex = tex.trim();
        if tex.is_empty() || self.code > 0 {
            return;
        }
        let mark = if display && !self.in_cell { "$$" } else { "$" };
        self.line.push_str(mark);
        inline::push_raw(&mut self.line, tex);
        self.line.push_str(mark);
    }

    pub(super) fn line_break(&mut self) {
        let kept = self.line.trim_end().len();
        if self.in_cell {
            if kept > 0 && !self.line.ends_with("<br>") {
                self.line.truncate(kept);
                self.line.push_str("<br>");
            }
        } else if self.heading > 0 || self.code > 0 {
            inline::push_space(&mut self.line);
        } else if kept == 0 {
        } else if self.line.ends_with('\n') {
            if self.spans.is_empty() {
                self.flush();
            }
        } else {
            self.line.truncate(kept);
            self.line.push_str("  \n");
            for span in &mut self.spans {
                span.start = span.start.min(self.line.len());
            }
        }
    }
}

/// Whether inline markdown is one image and nothing else.
fn is_image_only(text: &str) -> bool {
    text.starts_with("![") && text.ends_with(')') && text.matches("](").count() == 1
}
