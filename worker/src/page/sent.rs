//! What a site has sent, on its way into the store of pages and back out of it.
//!
//! Where a caller is on the line it is packed while the page is read, on another thread; else with the document, because
//! other pages are there to be computed.

use bytes::Bytes;
use weir_shared::domain::cache::{self, Head, Parts};
use weir_shared::domain::scrape::{Format, ScrapeOptions};
use weir_shared::domain::target::without_user;
use weir_shared::store::contents::cache::{Content, Found, PartsOf};
use weir_shared::store::contents::version::Version;

use super::cpu::{self, Ahead};
use super::kind::BodyKind;
use super::request::PageRequest;
use super::task::PageTask;
use crate::browser::{Rendered, Shot};
use crate::fetch::Fetched;

/// The part of all room that one page may take: one in so many.
const SHARE: i64 = 8;

/// What a site has sent for a page.
pub enum Sent {
    Whole(Box<Answer>),
    /// It is being packed.
    Ahead(Ahead<Option<Box<Version>>>),
}

/// What a site has sent, before it is packed.
pub struct Answer {
    head: Head,
    body: Option<Bytes>,
    dom: Option<Bytes>,
    shot: Option<Bytes>,
    branding: Option<Bytes>,
}

impl Sent {
    /// Of a response. `None`: it is not to be kept.
    pub fn fetched(task: &PageTask, request: &PageRequest, fetched: &Fetched, kind: BodyKind) -> Option<Self> {
        // What broke off, or is nothing, is of the moment.
        if !request.may_be_kept(task) || fetched.incomplete || fetched.body.is_empty() {
            return None;
        }
        let head = Head {
            url: fetched.url.clone(),
            asked: (request.url != fetched.url).then(|| request.url.clone()),
            status: fetched.status,
            content_type: fetched.content_type.clone(),
            charset: fetched.http_charset.clone(),
            timezone: None,
            is_unseen: kind == BodyKind::Html && task.options().wants(&Format::RawBase64),
            parts: Parts::default(),
        };
        let answer = Answer { head, body: Some(fetched.body.clone()), dom: None, shot: None, branding: None };
        Some(Self::new(task, answer, request.is_trusted))
    }

    /// Of a page that a browser has rendered: its document, and as it was served. `None`: it is not to be kept.
    pub fn rendered(
        task: &PageTask,
        request: &PageRequest,
        rendered: &Rendered,
        (dom, body): (&Bytes, Option<&Bytes>),
    ) -> Option<Self> {
        if !request.may_be_kept(task) {
            return None;
        }
        let head = Head {
            url: rendered.url.clone(),
            asked: (request.url != rendered.url).then(|| request.url.clone()),
            status: rendered.status,
            content_type: rendered.content_type.clone(),
            charset: None,
            timezone: rendered.timezone.clone(),
            is_unseen: false,
            parts: Parts::default(),
        };
        let branding = rendered.branding.as_ref().and_then(|looks| serde_json::to_vec(looks).ok());
        let answer = Answer {
            head,
            body: body.cloned(),
            dom: Some(dom.clone()),
            shot: rendered.screenshot.as_ref().map(|shot| shot.data_uri().into()),
            branding: branding.map(Bytes::from),
        };
        Some(Self::new(task, answer, request.is_trusted && rendered.is_trusted))
    }

    /// `is_trusted`: it came so that it may be answered to others.
    fn new(task: &PageTask, answer: Answer, is_trusted: bool) -> Self {
        if !is_trusted || !task.spec.kind.is_direct() {
            return Self::Whole(answer.into());
        }
        let task = task.clone();
        Self::Ahead(cpu::ahead(task.holder(), move || answer.pack(&task)))
    }

    /// Ready to be stored. `None`: it is not kept. Computes and blocks.
    pub fn packed(self, task: &PageTask) -> Option<Box<Version>> {
        match self {
            Self::Whole(answer) => answer.pack(task),
            Self::Ahead(ahead) => ahead.wait().flatten(),
        }
    }
}

impl Answer {
    fn pack(mut self, task: &PageTask) -> Option<Box<Version>> {
        let (page, room) = (&task.page, task.context.process.settings.cache_size);
        let parts: PartsOf<'_> = [&self.body, &self.dom, &self.shot, &self.branding].map(Option::as_deref);
        self.head.parts = Parts::of(&parts);
        let places = cache::places(&task.address(), task.options(), page.team_id, &self.head)?;
        match Version::pack(places, &without_user(&page.url), &self.head, &parts) {
            // One page must not take the room of all others.
            Ok(version) => version.filter(|version| version.packed <= room / SHARE).map(Box::new),
            Err(error) => {
                tracing::warn!(%error, page.id = %page.id, "what a site has sent cannot be kept");
                None
            }
        }
    }
}

/// What was kept, as if it came now.
pub enum Kept {
    Fetched(Box<Fetched>),
    Rendered(Box<Rendered>),
}

impl Kept {
    /// What is kept may have more parts than `options` ask for: another call had its reasons for them, and they are left
    /// where they are. `None`: it is not what its head says.
    pub fn new(found: &Found, content: Content, options: &ScrapeOptions) -> Option<Self> {
        let head = &found.head;
        let [body, dom, shot, branding] = content.into_parts();
        let Some(dom) = dom else {
            return Some(Self::Fetched(Box::new(Fetched {
                url: head.url.clone(),
                status: head.status,
                content_type: head.content_type.clone(),
                http_charset: head.charset.clone(),
                retry_after: None,
                refresh: None,
                body: body?.into(),
                incomplete: false,
                // Nothing else is kept.
                is_trusted: true,
            })));
        };
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok();
        let rendered = Rendered {
            url: head.url.clone(),
            status: head.status,
            content_type: head.content_type.clone(),
            html: text(dom)?,
            raw_html: body.and_then(text),
            screenshot: shot
                .filter(|_| options.screenshot().is_some())
                .and_then(text)
                .and_then(|uri| Shot::of_data_uri(&uri)),
            branding: branding
                .filter(|_| options.wants(&Format::Branding))
                .and_then(|looks| serde_json::from_slice(&looks).ok()),
            actions: None,
            timezone: head.timezone.clone(),
            is_trusted: true,
            is_follower: false,
        };
        Some(Self::Rendered(rendered.into()))
    }
}
