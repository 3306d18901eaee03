//! What viewers may ask for: their messages, each within bounds, and the commands of the protocol that they become.

use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

/// Longest text message of a viewer with control, bytes.
pub const TEXT_MESSAGE: usize = 320 << 10;
/// Largest message at all: an upload with its head.
pub const MESSAGE: usize = UPLOAD + HEAD;
/// Longest head of an upload, bytes.
const HEAD: usize = 64 << 10;
/// All files of one upload together, bytes.
pub const UPLOAD: usize = 10 << 20;
const UPLOAD_FILES: usize = 20;
/// Longest text inserted at once, bytes.
const TEXT: usize = 256 << 10;
const ADDRESS: usize = 8 << 10;
const FINGERS: usize = 10;
/// Window of a viewport, CSS pixels.
const WIDTH: std::ops::RangeInclusive<u32> = 240..=1920;
const HEIGHT: std::ops::RangeInclusive<u32> = 240..=1920;

/// One message of a viewer. Coordinates are CSS pixels of the picture as the frame's head gave its size.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Order {
    /// A frame was drawn: the next may come. The only message that counts without control.
    Ack,
    Mouse {
        event: Press,
        x: f64,
        y: f64,
        /// As in the DOM: 0 left, 1 middle, 2 right.
        #[serde(default)]
        button: u8,
        #[serde(default)]
        buttons: u8,
        #[serde(default)]
        clicks: u8,
        #[serde(default)]
        modifiers: u8,
    },
    Wheel {
        x: f64,
        y: f64,
        dx: f64,
        dy: f64,
        #[serde(default)]
        modifiers: u8,
    },
    Key {
        event: Press,
        key: String,
        code: String,
        /// Windows virtual key code: the DOM's `keyCode`.
        #[serde(default)]
        key_code: u16,
        /// What the key writes, if it writes.
        #[serde(default)]
        text: String,
        #[serde(default)]
        modifiers: u8,
        #[serde(default)]
        location: u8,
        #[serde(default)]
        repeat: bool,
    },
    /// Text from the clipboard, an input method or a phone's keyboard.
    Text {
        text: String,
    },
    /// Text that an input method has not finished yet.
    Compose {
        text: String,
    },
    Touch {
        event: Contact,
        points: Vec<Finger>,
        #[serde(default)]
        modifiers: u8,
    },
    Navigate {
        url: String,
    },
    Back,
    Forward,
    Reload,
    Stop,
    Tab {
        id: String,
    },
    NewTab,
    CloseTab {
        id: String,
    },
    Dialog {
        accept: bool,
        #[serde(default)]
        text: Option<String>,
    },
    /// The viewer closes the file chooser without a file.
    CancelChooser,
    /// A page of this size; without one, the browser's own.
    Viewport {
        #[serde(default)]
        width: Option<u32>,
        #[serde(default)]
        height: Option<u32>,
    },
    /// The selected text, for the viewer's clipboard.
    Copy,
    /// Made from a binary message.
    #[serde(skip)]
    Upload(Vec<File>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Press {
    Move,
    Down,
    Up,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Contact {
    Start,
    Move,
    End,
    Cancel,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Finger {
    pub id: u32,
    pub x: f64,
    pub y: f64,
}

/// A file for the page's file chooser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub name: String,
    pub mime: String,
    pub bytes: Vec<u8>,
}

impl Order {
    /// Reads a text message. `None`: it is unknown or out of bounds.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > TEXT_MESSAGE {
            return None;
        }
        serde_json::from_str::<Self>(text).ok().filter(Self::is_bounded)
    }

    /// Reads a binary message: length of the head (4 bytes, big endian), the head
    /// (`{"files":[{"name","type","size"}]}`), the files' bytes one after another.
    pub fn parse_upload(bytes: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Head {
            files: Vec<HeadFile>,
        }
        #[derive(Deserialize)]
        struct HeadFile {
            name: String,
            #[serde(default)]
            r#type: String,
            size: usize,
        }
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = Some(u32::from_be_bytes(*length) as usize).filter(|length| *length <= HEAD)?;
        let (head, mut rest) = rest.split_at_checked(length)?;
        let head: Head = serde_json::from_slice(head).ok()?;
        if head.files.is_empty() || head.files.len() > UPLOAD_FILES {
            return None;
        }
        let mut files = Vec::with_capacity(head.files.len());
        for file in head.files {
            let (content, after) = rest.split_at_checked(file.size)?;
            rest = after;
            if file.name.len() > 255 || file.r#type.len() > 255 {
                return None;
            }
            files.push(File { name: file.name, mime: file.r#type, bytes: content.to_vec() });
        }
        rest.is_empty().then_some(Self::Upload(files))
    }

    fn is_bounded(&self) -> bool {
        let on_page = |x: f64, y: f64| [x, y].iter().all(|v| v.is_finite() && (-10_000.0..=20_000.0).contains(v));
        match self {
            Self::Mouse { x, y, clicks, .. } => on_page(*x, *y) && *clicks <= 3,
            Self::Wheel { x, y, dx, dy, .. } => on_page(*x, *y) && on_page(*dx, *dy),
            Self::Key { key, code, text, location, event, .. } => {
                key.len() <= 64 && code.len() <= 64 && text.len() <= 16 && *location <= 3 && *event != Press::Move
            }
            Self::Text { text } | Self::Compose { text } => text.len() <= TEXT,
            Self::Touch { points, .. } => points.len() <= FINGERS && points.iter().all(|p| on_page(p.x, p.y)),
            Self::Navigate { url } => url.len() <= ADDRESS,
            Self::Tab { id } | Self::CloseTab { id } => id.len() <= 64,
            Self::Dialog { text, .. } => text.as_ref().is_none_or(|text| text.len() <= TEXT),
            Self::Viewport { width, height } => {
                width.is_none_or(|w| WIDTH.contains(&w)) && height.is_none_or(|h| HEIGHT.contains(&h))
            }
            _ => true,
        }
    }

    /// Whether losing this one among many does no harm.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Mouse { event, .. } => *event == Press::Move,
            Self::Touch { event, .. } => *event == Contact::Move,
            Self::Wheel { .. } | Self::Compose { .. } => true,
            _ => false,
        }
    }

    /// The command that an input becomes; `None`: it is not an input to the page. `offset_top` is the height of what
    /// the picture shows above the page, CSS pixels.
    pub fn command(&self, offset_top: f64) -> Option<(&'static str, Value)> {
        Some(match self {
            Self::Mouse { event, x, y, button, buttons, clicks, modifiers } => {
                let kind = match event {
                    Press::Move => "mouseMoved",
                    Press::Down => "mousePressed",
                    Press::Up => "mouseReleased",
                };
                let button = match (event, button) {
                    (Press::Move, _) if *buttons == 0 => "none",
                    (_, 0) => "left",
                    (_, 1) => "middle",
                    (_, 2) => "right",
                    (_, 3) => "back",
                    (_, 4) => "forward",
                    _ => "none",
                };
                let params = json!({
                    "type": kind, "x": x, "y": y - offset_top, "button": button, "buttons": buttons & 31,
                    "clickCount": clicks, "modifiers": modifiers & 15,
                });
                ("Input.dispatchMouseEvent", params)
            }
            Self::Wheel { x, y, dx, dy, modifiers } => (
                "Input.dispatchMouseEvent",
                json!({
                    "type": "mouseWheel", "x": x, "y": y - offset_top, "deltaX": dx, "deltaY": dy,
                    "modifiers": modifiers & 15,
                }),
            ),
            Self::Key { event, key, code, key_code, text, modifiers, location, repeat } => {
                let kind = match event {
                    Press::Up => "keyUp",
                    _ if text.is_empty() => "rawKeyDown",
                    _ => "keyDown",
                };
                let mut params = json!({
                    "type": kind, "key": key, "code": code, "windowsVirtualKeyCode": key_code,
                    "nativeVirtualKeyCode": key_code, "modifiers": modifiers & 15, "location": location,
                    "autoRepeat": repeat, "isKeypad": *location == 3,
                });
                if *event == Press::Down && !text.is_empty() {
                    params["text"] = json!(text);
                    params["unmodifiedText"] = json!(text);
                }
                ("Input.dispatchKeyEvent", params)
            }
            Self::Text { text } => ("Input.insertText", json!({"text": text})),
            Self::Compose { text } => {
                let end = text.encode_utf16().count();
                ("Input.imeSetComposition", json!({"text": text, "selectionStart": end, "selectionEnd": end}))
            }
            Self::Touch { event, points, modifiers } => {
                let kind = match event {
                    Contact::Start => "touchStart",
                    Contact::Move => "touchMove",
                    Contact::End => "touchEnd",
                    Contact::Cancel => "touchCancel",
                };
                let points: Vec<Value> = match event {
                    Contact::Cancel => Vec::new(),
                    _ => points.iter().map(|p| json!({"id": p.id, "x": p.x, "y": p.y - offset_top})).collect(),
                };
                let params = json!({"type": kind, "touchPoints": points, "modifiers": modifiers & 15});
                ("Input.dispatchTouchEvent", params)
            }
            _ => return None,
        })
    }
}

/// What was typed into the address bar, as an address to open; the error says why not.
pub fn address(typed: &str) -> Result<String, &'static str> {
    const NO_ADDRESS: &str = "That is not a web address.";
    let typed = typed.trim();
    if typed.eq_ignore_ascii_case("about:blank") {
        return Ok("about:blank".to_owned());
    }
    if typed.is_empty() || typed.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(NO_ADDRESS);
    }
    let is_port = |text: &str| {
        let port = text.split(['/', '?', '#']).next().unwrap_or_default();
        !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
    };
    let has_scheme = match typed.split_once(':') {
        // host:port, or an IPv6 address in brackets.
        Some((before, after)) => !before.contains(['/', '?', '#', '[']) && !is_port(after),
        None => false,
    };
    let text = if has_scheme { typed.to_owned() } else { format!("https://{typed}") };
    let url = Url::parse(&text).map_err(|_| NO_ADDRESS)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("Only http and https addresses can be opened here.");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(NO_ADDRESS);
    }
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_out_of_bounds_are_none() {
        for text in [
            "",
            "[]",
            r#"{"type":"evaluate","expression":"1"}"#,
            r#"{"type":"upload"}"#,
            r#"{"type":"mouse","event":"down","x":1e300,"y":0}"#,
            r#"{"type":"mouse","event":"down","x":1,"y":0,"clicks":200}"#,
            r#"{"type":"mouse","event":"down","x":null,"y":0}"#,
            r#"{"type":"key","event":"move","key":"a","code":"KeyA"}"#,
            r#"{"type":"key","event":"down","key":"a","code":"KeyA","text":"much too long for one key"}"#,
            r#"{"type":"viewport","width":100000,"height":720}"#,
        ] {
            assert_eq!(Order::parse(text), None, "{text}");
        }
        let long = format!(r#"{{"type":"text","text":"{}"}}"#, "x".repeat(TEXT + 1));
        assert_eq!(Order::parse(&long), None);
        let points = [r#"{"id":1,"x":1,"y":1}"#; 11].join(",");
        assert_eq!(Order::parse(&format!(r#"{{"type":"touch","event":"start","points":[{points}]}}"#)), None);
    }

    #[test]
    fn inputs_become_commands_of_the_protocol() {
        let command = |text: &str| Order::parse(text).and_then(|order| order.command(10.0)).expect(text);
        let (method, params) = command(r#"{"type":"mouse","event":"down","x":5,"y":30,"button":2,"clicks":1}"#);
        assert_eq!(
            (method, &params["button"], &params["y"]),
            ("Input.dispatchMouseEvent", &json!("right"), &json!(20.0))
        );
        let (_, params) = command(r#"{"type":"mouse","event":"move","x":5,"y":30}"#);
        assert_eq!(params["button"], "none");
        let (_, params) = command(r#"{"type":"key","event":"down","key":"a","code":"KeyA","keyCode":65,"text":"a"}"#);
        assert_eq!((&params["type"], &params["text"]), (&json!("keyDown"), &json!("a")));
        let (_, params) = command(r#"{"type":"key","event":"down","key":"Tab","code":"Tab","keyCode":9}"#);
        assert_eq!((&params["type"], params.get("text")), (&json!("rawKeyDown"), None));
        let (method, _) = command(r#"{"type":"text","text":"漢字"}"#);
        assert_eq!(method, "Input.insertText");
    }

    #[test]
    fn the_address_bar_opens_the_web_and_nothing_else() {
        for (typed, expected) in [
            ("example.com", Some("https://example.com/")),
            (" http://example.com/a b ", None),
            ("http://example.com/a?b=c:d", Some("http://example.com/a?b=c:d")),
            ("localhost:3000/x", Some("https://localhost:3000/x")),
            ("127.0.0.1:80", Some("https://127.0.0.1:80/")),
            ("[::1]:3000", Some("https://[::1]:3000/")),
            ("about:blank", Some("about:blank")),
            ("about:crash", None),
            ("file:///etc/passwd", None),
            ("javascript:alert(1)", None),
            ("data:text/html,x", None),
            ("chrome://settings", None),
            ("view-source:http://example.com", None),
            ("two words", None),
            ("", None),
            ("http://", None),
        ] {
            assert_eq!(address(typed).ok().as_deref(), expected, "{typed}");
        }
    }

    #[test]
    fn an_upload_is_read_to_its_last_byte() {
        let head = br#"{"files":[{"name":"a.txt","type":"text/plain","size":2},{"name":"b","size":1}]}"#;
        let mut message = (head.len() as u32).to_be_bytes().to_vec();
        message.extend_from_slice(head);
        message.extend_from_slice(b"hi!");
        let Some(Order::Upload(files)) = Order::parse_upload(&message) else { panic!("not read") };
        assert_eq!((files[0].bytes.as_slice(), files[1].bytes.as_slice()), (b"hi".as_slice(), b"!".as_slice()));
        message.push(0);
        assert_eq!(Order::parse_upload(&message), None);
        assert_eq!(Order::parse_upload(&[255, 255, 255, 255, 0]), None);
        assert_eq!(Order::parse_upload(&[]), None);
        // A head without end is not read to see whether it is one.
        let head = format!(r#"{{"files":[{{"name":"a","size":0}}],"x":[{}0]}}"#, "0,".repeat(HEAD));
        let mut message = (head.len() as u32).to_be_bytes().to_vec();
        message.extend_from_slice(head.as_bytes());
        assert_eq!(Order::parse_upload(&message), None);
    }
}
