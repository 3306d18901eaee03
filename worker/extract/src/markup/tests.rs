use std::cell::RefCell;

use html5ever::interface::TreeSink as _;
use html5ever::tokenizer::TokenizerOpts;
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};

use super::super::tree::Sink;
use super::*;

/// Tokens as they pass, on their way to a tree builder, which says where raw text begins.
struct Recorder {
    builder: TreeBuilder<u32, Sink>,
    seen: RefCell<Vec<Token>>,
}

impl TokenSink for Recorder {
    type Handle = u32;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<u32> {
        let copy = match &token {
            Token::TagToken(tag) => Some(Token::TagToken(tag.clone())),
            Token::DoctypeToken(doctype) => Some(Token::DoctypeToken(doctype.clone())),
            Token::CommentToken(text) => Some(Token::CommentToken(text.clone())),
            Token::CharacterTokens(text) => Some(Token::CharacterTokens(text.clone())),
            Token::NullCharacterToken => Some(Token::NullCharacterToken),
            Token::EOFToken => Some(Token::EOFToken),
            Token::ParseError(_) => None,
        };
        let mut seen = self.seen.borrow_mut();
        match (seen.last_mut(), copy) {
            // How text is divided does not matter.
            (Some(Token::CharacterTokens(before)), Some(Token::CharacterTokens(text))) => before.push_slice(&text),
            (_, Some(token)) => seen.push(token),
            (_, None) => {}
        }
        drop(seen);
        self.builder.process_token(token, line)
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// The tokens of a page, and its tree.
fn read(
    html: &str,
    scripting: bool,
    discard_bom: bool,
    feeding: impl Fn(&Tokenizer<Watch<Recorder>>, StrTendril),
) -> (Vec<Token>, Vec<String>) {
    let options = TreeBuilderOpts { scripting_enabled: scripting, ..Default::default() };
    let builder = TreeBuilder::new(Sink::with_capacity(16), options);
    let sink = Watch::new(Recorder { builder, seen: RefCell::new(Vec::new()) });
    let tokenizer = Tokenizer::new(sink, TokenizerOpts { discard_bom, ..Default::default() });
    feeding(&tokenizer, StrTendril::from(html));
    tokenizer.end();
    let recorder = tokenizer.sink.sink;
    let dom = recorder.builder.sink.finish();
    let node = |i: usize| {
        let attributes = dom.element(i).map(|e| e.attrs.iter().map(|a| (&a.name, &*a.value)).collect::<Vec<_>>());
        format!("{i} {:?} {} {} {:?} {attributes:?}", dom.tag(i), dom.end(i), dom.parent(i), dom.text(i))
    };
    (recorder.seen.into_inner(), (0..dom.len()).map(node).collect())
}

/// Reads a page in both ways.
#[track_caller]
fn agree(html: &str) {
    for scripting in [false, true] {
        let ours = read(html, scripting, false, |tokenizer, text| feed(tokenizer, &text, |_| false));
        let theirs = read(html, scripting, true, |tokenizer, text| {
            let input = BufferQueue::default();
            input.push_back(text);
            while !input.is_empty() {
                let _ = tokenizer.feed(&input);
            }
        });
        assert_eq!(ours, theirs, "{html:?}");
    }
}

#[test]
fn each_kind_of_markup_is_read_as_the_tokenizer_reads_it() {
    for html in [
        "",
        "text alone",
        "<!doctype html><html lang=en><head><title>a<b>&amp;</title><meta charset=utf-8></head><body>x</body></html>",
        "<p class=\"a b\" ID='c' data-x=1 hidden>one<br/>two<BR>three</P>",
        "<a href=\"/x?a=1&amp;b=2&c=3&copy=4&copy;&copy_&notit;&ampx&\">&amp; &AMP &notit; &notin; &#65; &#x41;&#x80;&#0;</a>",
        "<a href=/x/>y</a><a b=c/d e>f</a><a =b>g</a><a b==c>h</a><a b=>i</a><a b='c'd=\"e\">j</a>",
        "<p a=1 A=2 a>twice</p x=1/>",
        "1 < 2 <> </> </ p> <3 <?php x > <!-- a > b --> <! c > <![CDATA[d]]> &",
        "<svg><title>a<b>c</title><![CDATA[<d>]]></svg><math><mi>x</mi></math>",
        "<script>if (a > b) { '</p>' }</script><style>a > b {}</style><textarea>\n<p></textarea><noscript><p>x</noscript>",
        "<script><!-- <script> </script> --></script>\u{feff}<p>t",
        "<pre>\n\nx</pre><plaintext><p>y</p>",
        "<table>\n<tr> <td>a</td>b\n</tr></table><select><option>1<option>2</select>",
        "<iframe><p></iframe><xmp></p></xmp><noembed><a></noembed><noframes><b></noframes><p>",
        "nul \0 here <a b='\0'>\0</a>",
        "<DIV\n\tclass\n=\n\"x\"\n>\u{fc}<\u{fc}><d\u{fc}v \u{fc}=\u{dc}></d\u{fc}v></DIV>",
        "<body><frameset><frame></frameset>",
    ] {
        agree(html);
        for end in (0..html.len()).filter(|end| html.is_char_boundary(*end)) {
            agree(&html[..end]);
        }
    }
}

#[test]
fn pieces_of_markup_in_any_order_are_read_as_the_tokenizer_reads_them() {
    const PIECES: [&str; 64] = [
        "<",
        ">",
        "/",
        "=",
        "\"",
        "'",
        "&",
        ";",
        "!",
        "--",
        "-",
        "?",
        "#",
        "x",
        "[",
        "]",
        " ",
        "\n",
        "\t",
        "\x0c",
        "a",
        "A",
        "\u{e4}",
        "0",
        "9",
        "<p>",
        "</p>",
        "<a href=",
        "<A HREF=\"",
        "</a>",
        "<b x='",
        "<br/>",
        "<svg>",
        "</svg>",
        "<title>",
        "</title>",
        "<script>",
        "</script>",
        "<!--",
        "-->",
        "<style>",
        "</style>",
        "<noscript>",
        "</noscript>",
        "<table>",
        "<td>",
        "</table>",
        "<pre>",
        "<textarea>",
        "</textarea>",
        "&amp;",
        "&amp",
        "&lt",
        "&notin;",
        "&not",
        "&#65;",
        "&#x41",
        "&#",
        "<![CDATA[",
        "]]>",
        "<!doctype ",
        "<plaintext",
        "\0",
        "\u{feff}",
    ];
    // A plain generator is chance enough here, and the same at every run.
    let mut state = 1u64;
    let mut next = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    for _ in 0..6000 {
        let length = 1 + next(24);
        let html: String = (0..length).map(|_| PIECES[next(PIECES.len())]).collect();
        agree(&html);
    }
}

#[test]
fn a_page_that_is_ordinary_does_not_pass_through_the_tokenizer() {
    let page = "<div class='a'><p>x &amp; y</p><img src=/i.png alt=\"z\"/></div>\n";
    let text = StrTendril::from(page);
    let mut at = 0;
    while at < text.len() {
        let (_, end) = ordinary(&text, at).expect("it is ordinary");
        assert!(end > at);
        at = end;
    }
    assert_eq!(ordinary(&StrTendril::from("<script>"), 0), None);
}

#[test]
fn reading_ends_when_it_is_told_to() {
    let seen = Cell::new(0);
    let (tokens, _) = read(&"<p>x".repeat(100), false, false, |tokenizer, text| {
        feed(tokenizer, &text, |_| {
            seen.set(seen.get() + 1);
            seen.get() > 10
        });
    });
    assert!(tokens.len() < 20, "{}", tokens.len());
}
