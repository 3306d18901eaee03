//! Lines that are the label of a control: "Click to expand", "3 likes", "Add to cart". Buttons go by what they are; these
//! are links and plain text.
//!
//! A line is one by all that it says, or by each of its parts. What is a word of prose as well, such as "Save", must be
//! written as a label and stand in a link or the like.

use std::sync::LazyLock;

use html5ever::local_name;

use super::{Line, Lines, MOST_NODES, Place};
use crate::tokens::{Cache, Hints};
use crate::tree::{Dom, Tag};

/// Characters of a line that may be labels, and of a remark, which may hold a name and a date.
const MOST: u32 = 48;
const MOST_OF_REMARK: u32 = 100;

/// What only controls say, sorted, in the form that [`Words`] gives. `#` is a number.
const PHRASES: &[&str] = &[
    "# answers",
    "# comment",
    "# comments",
    "# like",
    "# likes",
    "# min de lecture",
    "# min de leitura",
    "# min di lettura",
    "# min lesezeit",
    "# min read",
    "# mins read",
    "# minute read",
    "# minutes read",
    "# minuti di lettura",
    "# participants",
    "# people found this helpful",
    "# points",
    "# posters",
    "# posts",
    "# posts · joined #",
    "# reactions",
    "# replies",
    "# reply",
    "# reply last reply",
    "# shares",
    "# upvotes",
    "# views",
    "# votes",
    "# watching",
    "add a comment",
    "add comment",
    "add to bag",
    "add to basket",
    "add to cart",
    "add to compare",
    "add to favorites",
    "add to favourites",
    "add to wish list",
    "add to wishlist",
    "adicionar ao carrinho",
    "aggiungi al carrello",
    "ajouter au comparateur",
    "ajouter au panier",
    "añadir al carrito",
    "back to top",
    "choose options",
    "clear rating",
    "click to collapse",
    "click to enlarge",
    "click to expand",
    "click to zoom",
    "continue reading",
    "copied to clipboard",
    "copy link",
    "czytaj więcej",
    "dodaj do koszyka",
    "en savoir plus",
    "explore related questions",
    "hide caption",
    "hide comments",
    "improve this answer",
    "improve this question",
    "in den warenkorb",
    "in winkelwagen",
    "iniciar sesión",
    "kommentar hinzufügen",
    "last reply",
    "leave a comment",
    "leave a reply",
    "leer más",
    "lees meer",
    "leggi di più",
    "leggi tutto",
    "leia mais",
    "lire la suite",
    "load more",
    "loading",
    "loading more",
    "loading more posts",
    "log in or sign up",
    "log in to comment",
    "log in to reply",
    "meer lezen",
    "mehr lesen",
    "more options",
    "mostra altro",
    "mostrar mais",
    "mostrar más",
    "nach oben",
    "ne plus comparer",
    "not helpful",
    "not open for further replies",
    "notify me when available",
    "oops! something went wrong while submitting the form",
    "pokaż więcej",
    "post a comment",
    "post comment",
    "posts #",
    "print this page",
    "quick add",
    "quick shop",
    "quick view",
    "rate this book",
    "rate this product",
    "rate this recipe",
    "read all reviews",
    "read less",
    "read more",
    "read more reviews",
    "replies #",
    "reply with quote",
    "report abuse",
    "report post",
    "retour en haut",
    "save for later",
    "scopri di più",
    "scroll to top",
    "se connecter",
    "see less",
    "select options",
    "share it",
    "share on facebook",
    "share on twitter",
    "share on x",
    "share this",
    "share this article",
    "share this post",
    "show all",
    "show comments",
    "show less",
    "show more",
    "skip to content",
    "skip to main content",
    "sort by date",
    "sort by votes",
    "start asking to get answers",
    "thank you! your submission has been received",
    "toggle caption",
    "toon meer",
    "unfollow",
    "ver mais",
    "ver más",
    "view all",
    "view attachment #",
    "view comments",
    "view details",
    "view forum posts",
    "view forum threads",
    "view more",
    "view product",
    "view profile",
    "voir plus",
    "was this answer helpful",
    "was this article helpful",
    "was this helpful",
    "was this page helpful",
    "weiterlesen",
    "write a review",
    "you must log in or register to reply here",
    "zaloguj się",
    "zum seitenanfang",
    "в корзину",
    "добавить в корзину",
    "показать ещё",
    "читать далее",
    "もっと見る",
    "カートに入れる",
    "加入购物车",
    "显示更多",
    "続きを読む",
    "阅读全文",
];

/// What prose says, too, sorted: only where a control says it.
const WORDS: &[&str] = &[
    "abonnieren",
    "accedi",
    "afdrukken",
    "anmelden",
    "antworten",
    "back",
    "beantwoorden",
    "bookmark",
    "comment",
    "comparar",
    "compare",
    "comparer",
    "compartilhar",
    "compartir",
    "condividi",
    "confronta",
    "connexion",
    "copy",
    "delen",
    "denunciar",
    "downvote",
    "drucken",
    "drukuj",
    "edit",
    "enregistrer",
    "entrar",
    "flag",
    "folgen",
    "follow",
    "following",
    "guardar",
    "imprimer",
    "imprimir",
    "inloggen",
    "like",
    "log in",
    "login",
    "melden",
    "menu",
    "merken",
    "obserwuj",
    "odpowiedz",
    "opslaan",
    "partager",
    "partilhar",
    "permalink",
    "porównaj",
    "print",
    "quote",
    "reageren",
    "register",
    "reply",
    "report",
    "responder",
    "rispondi",
    "répondre",
    "salva",
    "salvar",
    "save",
    "segnala",
    "seguir",
    "share",
    "sign in",
    "sign up",
    "signaler",
    "sort",
    "speichern",
    "stampa",
    "subscribe",
    "suivre",
    "teilen",
    "top",
    "tweet",
    "udostępnij",
    "upvote",
    "vergelijken",
    "vergleichen",
    "volgen",
    "zapisz",
    "zgłoś",
    "войти",
    "ответить",
    "печать",
    "поделиться",
    "пожаловаться",
    "сохранить",
    "сравнить",
    "シェア",
    "フォロー",
    "ログイン",
    "保存",
    "共有",
    "关注",
    "分享",
    "印刷",
    "回复",
    "打印",
    "登录",
    "返信",
    "通報",
];

/// What lines begin with that a forum writes below each post or thread. Lower case.
const REMARKS: &[&str] = &[
    "find the answer to your question",
    "last edited",
    "see similar questions",
    "you must be logged in to",
    "you must log in to",
];

/// Marks lines that are labels, and in a discussion what a forum remarks on posts.
pub fn find(dom: &Dom, discussion: bool, lines: &Lines, gone: &mut [bool]) {
    let mut names = Cache::default();
    let mut words = Words::default();
    for (line, gone) in lines.list.iter().zip(gone) {
        if line.chars <= MOST_OF_REMARK
            && matches!(line.place, Place::Text | Place::Quote | Place::Heading(2..))
            && line.nodes.1 - line.nodes.0 <= MOST_NODES as u32
            && (line.chars <= MOST
                && (is_label(dom, lines, line, &mut words, &mut names) || is_unfilled(dom, lines, line))
                || discussion && is_remark(dom, lines, line))
        {
            *gone = true;
        }
    }
}

fn is_label<'d>(dom: &'d Dom, lines: &Lines, line: &Line, words: &mut Words, names: &mut Cache<'d>) -> bool {
    let nodes = lines.nodes(line);
    let text = |node: u32| dom.text(node as usize);
    let (Some(&first), Some(&last)) = (nodes.first(), nodes.last()) else { return false };
    if ENDS.may_be(text(first), text(last)) {
        words.of(nodes.iter().map(|&node| text(node)));
        if words.is_phrase() {
            return true;
        }
        if first == last {
            return words.is_word() && stands_in_control(dom, line, first as usize, names);
        }
    }
    if first == last || !ENDS.may_be(text(first), text(first)) {
        return false;
    }
    let mut is_one = false;
    // Each part of it: "Reply · Share".
    let all = nodes.iter().all(|&node| {
        words.of([text(node)]);
        if words.text.is_empty() {
            return true;
        }
        let found = words.is_phrase() || words.is_word() && stands_in_control(dom, line, node as usize, names);
        is_one |= found;
        found
    });
    all && is_one
}

/// With which letters the labels begin and end. Most lines are told apart from all of them by that alone.
struct Ends([u32; 27]);

static ENDS: LazyLock<Ends> = LazyLock::new(|| {
    let mut ends = Ends([0; 27]);
    for label in PHRASES.iter().chain(WORDS) {
        if let (Some(first), Some(last)) = (Ends::first(label.bytes()), Ends::first(label.bytes().rev())) {
            ends.0[first] |= 1 << last;
        }
    }
    ends
});

impl Ends {
    /// The first letter: its place in the alphabet, 26 for a number. `None`: there is none, or it is of another script.
    fn first(mut bytes: impl Iterator<Item = u8>) -> Option<usize> {
        match bytes.find(|b| b.is_ascii_alphanumeric() || !b.is_ascii() || *b == b'#')? {
            b if b.is_ascii_alphabetic() => Some(usize::from(b.to_ascii_lowercase() - b'a')),
            b if b.is_ascii() => Some(26),
            _ => None,
        }
    }

    fn may_be(&self, begin: &str, end: &str) -> bool {
        match (Self::first(begin.bytes()), Self::first(end.bytes().rev())) {
            (Some(first), Some(last)) => self.0[first] & 1 << last != 0,
            _ => true,
        }
    }
}

/// Whether a line begins as what a forum says of a post does.
fn is_remark(dom: &Dom, lines: &Lines, line: &Line) -> bool {
    let text = lines.nodes(line).first().map_or("", |&node| dom.text(node as usize).trim_start());
    REMARKS.iter().any(|remark| text.get(..remark.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(remark)))
}

/// Whether a line is a place for a value that a script was to fill in: `{{ price }}`.
fn is_unfilled(dom: &Dom, lines: &Lines, line: &Line) -> bool {
    let nodes = lines.nodes(line);
    let (Some(&first), Some(&last)) = (nodes.first(), nodes.last()) else { return false };
    dom.text(last as usize).trim_end().ends_with("}}")
        && dom.text(first as usize).trim_start().trim_start_matches('$').starts_with("{{")
}

/// Whether text stands in a link, a button or what is called one.
fn stands_in_control<'d>(dom: &'d Dom, line: &Line, node: usize, names: &mut Cache<'d>) -> bool {
    const CONTROLS: Hints = Hints::BUTTON.or(Hints::SHARE).or(Hints::TOOLS);
    let block = line.block as usize;
    dom.ancestors(node).take_while(|&up| up >= block).take(8).any(|up| {
        matches!(dom.tag(up), Tag::A | Tag::Button | Tag::Label | Tag::Summary)
            || dom.attr(up, &local_name!("role")) == Some("button")
            || names.of(dom.class(up)).any(CONTROLS)
    })
}

/// Signs around a label that say nothing. Not those of paths, calls and options: `/login`, `print()`, `--save`.
const SIGNS: &[char] = &[
    ' ', '·', '•', '|', '›', '»', '«', '‹', '→', '←', '↑', '↓', '▸', '▾', '▼', '▲', '…', '.', ':', '!', '?', '+', '✓',
    '[', ']',
];

/// What a line says: in lower case, with one space between words, numbers as `#`, and without the signs around it.
#[derive(Default)]
struct Words {
    text: String,
    /// The text as it is written, with one space between words.
    written: String,
    /// It begins as a label does: not with a small letter.
    is_written_large: bool,
}

impl Words {
    fn of<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) {
        let written = &mut self.written;
        written.clear();
        for text in texts {
            // Parts of a line stand apart: a number, and what it counts.
            for word in text.split_whitespace() {
                if !written.is_empty() {
                    written.push(' ');
                }
                written.push_str(word);
            }
        }
        let label = written.trim_matches(SIGNS);
        self.is_written_large = label.chars().next().is_some_and(|c| !c.is_lowercase());
        self.text.clear();
        for word in label.split(' ') {
            if !self.text.is_empty() {
                self.text.push(' ');
            }
            let is_number = word
                .trim_end_matches(['k', 'K', 'M', '+'])
                .bytes()
                .all(|b| b.is_ascii_digit() || b == b'.' || b == b',');
            if is_number && word.bytes().any(|b| b.is_ascii_digit()) {
                self.text.push('#');
            } else {
                self.text.extend(word.chars().flat_map(char::to_lowercase));
            }
        }
    }

    fn is_phrase(&self) -> bool {
        PHRASES.binary_search(&self.text.as_str()).is_ok()
    }

    fn is_word(&self) -> bool {
        self.is_written_large && WORDS.binary_search(&self.text.as_str()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{left, left_of_discussion};
    use super::*;

    #[test]
    fn the_tables_are_sorted() {
        assert!(PHRASES.is_sorted() && WORDS.is_sorted());
    }

    #[test]
    fn lines_that_are_a_label_as_a_whole_go() {
        for label in [
            "<p>Click to expand...</p>",
            "<div><a>Add to wishlist</a></div>",
            "<ul><li>1.2k likes</li></ul>",
            "<p><span>Toggle</span> <b>caption</b></p>",
            "<p><a href=/r>Reply</a> · <a href=/s>Share</a></p>",
            "<div class=share>Share</div>",
            "<p>もっと見る</p>",
            "<div>Loading more…</div>",
            "<p>Was this article helpful?</p>",
            "<p>{{ errors[4].message }}</p>",
            "<b>${{amount}}</b>",
        ] {
            assert_eq!(left(&format!("<p>It boils.</p>{label}")), "It boils.", "{label}");
        }
    }

    #[test]
    fn what_a_forum_remarks_on_posts_goes() {
        let html = "<p>It boils.</p><div>Last edited: <time>May 4, 2024</time></div>\
             <blockquote><p>It does.</p><a>Click to expand...</a></blockquote>";
        assert_eq!(left_of_discussion(html), "It boils.It does.");
        let long = "<p>It boils.</p><div>Last edited by <a href=/ada>Ada of the Harbour</a> on Sun Feb 22, 2026 2:08 am, edited 8 times in total.</div>";
        assert_eq!(left_of_discussion(long), "It boils.");
        assert!(left(html).contains("Last edited"), "a page of a wiki says so of itself");
        assert!(left_of_discussion("<p>I last edited it in May.</p>").contains("May"));
    }

    #[test]
    fn what_only_holds_such_words_stays() {
        for text in [
            "<ul><li><a href=/login>/login</a></li></ul>",
            "<ul><li><a href=#print>print()</a></li></ul>",
            "<ul><li><a href=#save>save</a></li></ul>",
            "<ul><li>Save</li></ul>",
            "<p>Click to expand the list of parts.</p>",
            "<p>To do so, <a href=/login>Log in</a>.</p>",
            "<table><tr><td>Read more</td></tr></table>",
            "<pre>Read more</pre>",
            "<p><code>Log in</code></p>",
            "<h1>Read more</h1>",
            "<p>Likes</p>",
            "<p>Write {{ name }}</p>",
            "<pre>{{ name }}</pre>",
            "<p><code>{{ name }}</code></p>",
        ] {
            assert_ne!(left(&format!("<p>It boils.</p>{text}")), "It boils.", "{text}");
        }
    }
}
