//! What the browser tells of its tabs, read into the terms of the live view. No IO, no state.

use std::borrow::Cow;

use bytes::{BufMut as _, Bytes, BytesMut};
use serde::Deserialize;

use crate::browser::cdp::Event;

/// Longest text of a dialog told to viewers, characters.
const DIALOG_TEXT: usize = 2_000;

/// Whether the live view takes events of this method.
pub fn wants(method: &str) -> bool {
    matches!(
        method,
        "Target.targetCreated"
            | "Target.targetInfoChanged"
            | "Target.targetDestroyed"
            | "Target.targetCrashed"
            | "Target.detachedFromTarget"
            | "Target.attachedToTarget"
            | "Page.screencastFrame"
            | "Page.screencastVisibilityChanged"
            | "Page.frameStartedLoading"
            | "Page.frameStoppedLoading"
            | "Page.frameNavigated"
            | "Page.navigatedWithinDocument"
            | "Page.javascriptDialogOpening"
            | "Page.javascriptDialogClosed"
            | "Page.fileChooserOpened"
    )
}

/// Something that happened in the browser. Those from [`TabEvent::Picture`] on are told by the session of a page.
#[derive(Debug)]
pub enum TabEvent<'a> {
    /// A tab appeared.
    Created(TargetInfo),
    /// A tab has another title or address.
    Changed(TargetInfo),
    /// The tab with this id is gone.
    Destroyed(String),
    /// The tab with this id crashed.
    Crashed(String),
    /// A frame in a process of its own has this session now.
    FrameAttached(String),
    /// The frame with this session is gone.
    FrameDetached(String),
    /// A picture of the page.
    Picture(Picture<'a>),
    /// Another tab was brought to the front.
    Hidden,
    /// A frame began or ended to load.
    Loading { frame: String, is_loading: bool },
    /// A frame shows another document.
    Navigated,
    /// The address changed within the document.
    NavigatedWithinDocument,
    /// The page asks something and waits.
    DialogOpened(Dialog),
    /// The dialog was answered.
    DialogClosed,
    /// The page asks for files.
    ChooserOpened(Chooser),
}

impl<'a> TabEvent<'a> {
    /// Reads an event; `None`: it changes nothing for viewers, or is not of the shape that the protocol says.
    pub fn read(event: &'a Event) -> Option<Self> {
        Some(match event.method.as_str() {
            "Target.targetCreated" => Self::Created(tab_of(event)?),
            "Target.targetInfoChanged" => Self::Changed(tab_of(event)?),
            "Target.targetDestroyed" => Self::Destroyed(event.params::<TargetGone>()?.target_id),
            "Target.targetCrashed" => Self::Crashed(event.params::<TargetGone>()?.target_id),
            "Target.attachedToTarget" => Self::FrameAttached(event.params::<SessionId>()?.session_id),
            "Target.detachedFromTarget" => Self::FrameDetached(event.params::<SessionId>()?.session_id),
            "Page.screencastFrame" => Self::Picture(event.params()?),
            "Page.screencastVisibilityChanged" => {
                return (!event.params::<Visibility>()?.visible).then_some(Self::Hidden);
            }
            "Page.frameStartedLoading" => Self::Loading { frame: event.params::<Frame>()?.frame_id, is_loading: true },
            "Page.frameStoppedLoading" => Self::Loading { frame: event.params::<Frame>()?.frame_id, is_loading: false },
            "Page.frameNavigated" => Self::Navigated,
            "Page.navigatedWithinDocument" => Self::NavigatedWithinDocument,
            "Page.javascriptDialogOpening" => Self::DialogOpened(Dialog::read(event)?),
            "Page.javascriptDialogClosed" => Self::DialogClosed,
            "Page.fileChooserOpened" => Self::ChooserOpened(Chooser::read(event)?),
            _ => return None,
        })
    }
}

/// A target of the browser.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetInfo {
    pub target_id: String,
    r#type: String,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub url: String,
}

impl TargetInfo {
    /// Whether it is a page that a person would see as a tab.
    pub fn is_tab(&self) -> bool {
        self.r#type == "page" && !self.url.starts_with("devtools://") && !self.url.starts_with("chrome-extension://")
    }
}

/// The answer of `Target.getTargets`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetList {
    pub target_infos: Vec<TargetInfo>,
}

/// A session that was attached or detached: an event's parameters, and the answer of `Target.attachToTarget`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionId {
    pub session_id: String,
}

/// A picture of the screencast.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Picture<'a> {
    /// A JPEG as base64.
    pub data: Cow<'a, str>,
    pub metadata: PictureMetadata,
    /// What the picture is acknowledged by.
    #[serde(rename = "sessionId")]
    pub number: i64,
}

/// What a picture shows, CSS pixels.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PictureMetadata {
    /// Height of what the picture shows above the page.
    #[serde(default)]
    pub offset_top: f64,
    device_width: f64,
    device_height: f64,
}

impl PictureMetadata {
    /// The picture as viewers get it: the head that the live view's documentation describes, then the JPEG.
    pub fn message(&self, jpeg: &[u8]) -> Bytes {
        // Out of range saturates, because a page can bend every one of these numbers.
        let pixels = |value: f64| value.round().clamp(0.0, f64::from(u16::MAX)) as u16;
        let mut bytes = BytesMut::with_capacity(8 + jpeg.len());
        bytes.put_u8(1);
        bytes.put_u8(0);
        bytes.put_u16(pixels(self.device_width));
        bytes.put_u16(pixels(self.device_height));
        bytes.put_u16(pixels(self.offset_top));
        bytes.put_slice(jpeg);
        bytes.freeze()
    }
}

/// A dialog of the page, its texts cut to a length that viewers can be told.
#[derive(Debug)]
pub struct Dialog {
    /// `alert`, `confirm`, `prompt` or `beforeunload`.
    pub kind: String,
    pub message: String,
    /// What a prompt suggests.
    pub default: String,
    /// Address of the frame that asks.
    pub url: String,
}

impl Dialog {
    fn read(event: &Event) -> Option<Self> {
        let read: DialogOpening = event.params()?;
        let cut = |text: &str| text.chars().take(DIALOG_TEXT).collect::<String>();
        Some(Self {
            kind: read.r#type,
            message: cut(&read.message),
            default: cut(read.default_prompt.as_deref().unwrap_or_default()),
            url: cut(&read.url),
        })
    }
}

/// A file chooser that the page opened and the live view took over.
#[derive(Debug)]
pub struct Chooser {
    /// Session of the page or the frame that asks.
    pub session: String,
    pub frame: String,
    /// The input that gets the files; `None`: the page opens files in a way of its own.
    pub node: Option<i64>,
    /// Whether it takes more than one file.
    pub multiple: bool,
}

impl Chooser {
    fn read(event: &Event) -> Option<Self> {
        let read: ChooserOpened = event.params()?;
        Some(Self {
            session: event.session.clone(),
            frame: read.frame_id,
            node: read.backend_node_id,
            multiple: read.mode == "selectMultiple",
        })
    }
}

fn tab_of(event: &Event) -> Option<TargetInfo> {
    Some(event.params::<TargetEvent>()?.target_info).filter(TargetInfo::is_tab)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetEvent {
    target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetGone {
    target_id: String,
}

#[derive(Deserialize)]
struct Visibility {
    visible: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    frame_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DialogOpening {
    #[serde(default)]
    message: String,
    r#type: String,
    #[serde(default)]
    default_prompt: Option<String>,
    #[serde(default)]
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChooserOpened {
    frame_id: String,
    mode: String,
    #[serde(default)]
    backend_node_id: Option<i64>,
}
