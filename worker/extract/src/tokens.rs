//! What the `class` and `id` of an element hint at. Hints only: the filter asks for position and content besides.

use foldhash::HashMap;

/// A set of hints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints(u32);

macro_rules! hints {
    ($($(#[$doc:meta])* $name:ident = $bit:expr;)*) => {
        impl Hints {
            $($(#[$doc])* pub const $name: Hints = Hints(1 << $bit);)*
        }
    };
}

hints! {
    /// Cookie and consent banners.
    CONSENT = 0;
    /// Advertising.
    AD = 1;
    /// Sharing and follow buttons.
    SHARE = 2;
    /// Newsletter sign-up.
    NEWSLETTER = 3;
    /// Pop-ups and drawers.
    MODAL = 4;
    /// Navigation and menus.
    NAV = 5;
    /// Page foot.
    FOOTER = 6;
    /// Page head.
    HEADER = 7;
    /// Side columns.
    SIDEBAR = 8;
    /// Links to other pages: related, popular, recommended.
    RELATED = 9;
    /// Readers' comments.
    COMMENTS = 10;
    /// Breadcrumbs.
    BREADCRUMB = 11;
    /// Paging.
    PAGINATION = 12;
    /// Skip links and text for screen readers.
    READER_ONLY = 13;
    /// Tables of contents.
    TOC = 14;
    /// Search and log-in boxes.
    SEARCH = 15;
    /// Tags and categories of an article.
    TAGS = 16;
    /// The content itself.
    CONTENT = 17;
    /// A layout word beside another hint: `has-sidebar`, `nav-wrapper`.
    LAYOUT = 18;
    /// Author boxes.
    AUTHOR = 19;
    /// Print, edit and similar tools.
    TOOLS = 20;
    /// What narrows a list down.
    FACETS = 21;
    /// Buttons and links that look like one.
    BUTTON = 22;
    /// What buyers say.
    REVIEWS = 23;
    /// What a forum says of who writes: ranks, banners, signatures.
    WRITER = 24;
    /// Alerts and bars that are about the site.
    NOTICE = 25;
    /// Fine print.
    FINE_PRINT = 26;
    /// Comments on the posts of a page of questions and answers, previews of what posts link to.
    REMARKS = 27;
    /// Other goods than the page's.
    OTHER_GOODS = 28;
    /// Shown only once somebody asks for it.
    HIDDEN = 29;
    /// What stands at the end of an article or a post.
    ENDING = 30;
}

impl Hints {
    /// Whether any of `other`'s hints is set.
    pub fn any(self, other: Hints) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets together.
    pub const fn or(self, other: Hints) -> Hints {
        Hints(self.0 | other.0)
    }

    /// This set without another's hints.
    pub const fn without(self, other: Hints) -> Hints {
        Hints(self.0 & !other.0)
    }

    /// Whether nothing is hinted.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// Hints by segment of a name: the parts between dashes, underscores and capitals.
fn of_segment(s: &str) -> Hints {
    match s {
        "cookie" | "cookies" | "cookiebar" | "cookiebanner" | "cookieconsent" | "consent" | "gdpr" | "ccpa"
        | "onetrust" | "cookiebot" | "didomi" | "usercentrics" | "truste" | "cookielaw" | "iubenda" | "cky"
        | "klaro" | "osano" | "trustarc" | "fides" => Hints::CONSENT,
        "ad" | "ads" | "advert" | "adverts" | "advertisement" | "advertising" | "adsbygoogle" | "adsense"
        | "adslot" | "adunit" | "adbox" | "sponsor" | "sponsored" | "sponsors" | "taboola" | "outbrain" | "dfp"
        | "gpt" | "doubleclick" | "leaderboard" | "adwrap" | "adcontainer" | "revcontent" | "mgid" => Hints::AD,
        "share" | "sharing" | "sharebar" | "shares" | "social" | "socials" | "addtoany" | "sharedaddy" | "addthis"
        | "sharethis" | "socialmedia" | "a2a" => Hints::SHARE,
        "newsletter" | "newsletters" | "subscribe" | "subscription" | "signup" | "optin" | "mailchimp"
        | "mailinglist" => Hints::NEWSLETTER,
        "modal" | "modals" | "popup" | "popups" | "lightbox" | "drawer" | "offcanvas" | "tooltip" | "toast"
        | "dropdown" | "popover" => Hints::MODAL,
        "nav" | "navbar" | "navigation" | "menu" | "menus" | "submenu" | "megamenu" | "topnav" | "subnav"
        | "sitenav" | "mainnav" | "navmenu" | "sidenav" | "navlinks" | "mainmenu" | "topmenu" => Hints::NAV,
        "footer" | "colophon" | "sitefooter" | "pagefooter" | "siteinfo" | "footnav" | "foot" => Hints::FOOTER,
        "header" | "masthead" | "topbar" | "siteheader" | "pageheader" | "banner" | "hdr" => Hints::HEADER,
        "sidebar" | "sidebars" | "aside" | "rail" | "sidecol" => Hints::SIDEBAR,
        "related" | "recommended" | "recommendations" | "recommend" | "trending" | "popular" | "upnext"
        | "relatedposts" | "jp-relatedposts" | "yarpp" | "recirc" | "recirculation" | "morefrom" | "readmore"
        | "similar" => Hints::RELATED,
        "comment" | "comments" | "commentlist" | "disqus" | "respond" => Hints::COMMENTS,
        "breadcrumb" | "breadcrumbs" | "crumbs" | "crumb" | "bread" => Hints::BREADCRUMB,
        "pagination" | "pager" | "paginator" | "paging" | "pagenav" => Hints::PAGINATION,
        "skip" | "skiplink" | "sronly" | "visuallyhidden" | "visually" => Hints::READER_ONLY,
        "toc" | "tableofcontents" => Hints::TOC,
        "search" | "searchform" | "searchbox" | "login" | "signin" => Hints::SEARCH,
        "tags" | "taglist" | "tagcloud" => Hints::TAGS,
        "author" | "authorbox" | "bio" => Hints::AUTHOR,
        "filter" | "filters" | "facet" | "facets" | "refine" | "refinement" | "refinements" => Hints::FACETS,
        "btn" | "btns" | "button" | "buttons" => Hints::BUTTON,
        "review" | "reviews" => Hints::REVIEWS,
        "print" | "toolbar" | "tools" | "editsection" | "signature" | "actions" | "controls" | "reactions"
        | "votes" | "voting" | "userextras" | "extras" | "postprofile" | "badges" => Hints::TOOLS,
        "content" | "main" | "article" | "entry" | "story" | "body" | "maincontent" | "post" => Hints::CONTENT,
        "has" | "with" | "no" | "without" | "layout" | "page" | "wrapper" | "wrap" | "container" | "outer" | "grid"
        | "row" | "col" | "columns" | "theme" | "template" | "left" | "right" | "inner" | "group" | "is" => {
            Hints::LAYOUT
        }
        _ => Hints::default(),
    }
}

/// Words that are written as one or as several, by their first two letters, with what they hint at.
const fn longer(first: [u8; 2]) -> &'static [(&'static str, Hints)] {
    match &first {
        b"al" => &[("alert-warning", Hints::NOTICE)],
        b"an" => &[("announcement-bar", Hints::NOTICE), ("announcement__bar", Hints::NOTICE)],
        b"au" => &[("author_statistics", Hints::WRITER)],
        b"cr" => &[("cross-sell", Hints::OTHER_GOODS), ("crosssell", Hints::OTHER_GOODS)],
        b"di" => &[("dismissible", Hints::NOTICE), ("disclaimer", Hints::FINE_PRINT)],
        b"ex" => &[("extrauserinfo", Hints::WRITER)],
        b"gu" => &[("guest-cta", Hints::NOTICE)],
        b"po" => &[("post-comments", Hints::REMARKS), ("postprofile", Hints::WRITER)],
        b"pr" => &[("promo-bar", Hints::NOTICE)],
        b"pu" => &[("pushnotification", Hints::NOTICE)],
        b"re" => &[("recently-viewed", Hints::OTHER_GOODS), ("related-product", Hints::OTHER_GOODS)],
        b"si" => &[("signature", Hints::WRITER)],
        b"sr" => &[("sronly", Hints::READER_ONLY)],
        b"un" => &[("unfurl-desc", Hints::REMARKS)],
        b"up" => &[("up-sell", Hints::OTHER_GOODS), ("upsell", Hints::OTHER_GOODS)],
        b"us" => &[
            ("user-title", Hints::WRITER),
            ("userbanner", Hints::WRITER),
            ("userextras", Hints::WRITER),
            ("usertitle", Hints::WRITER),
        ],
        _ => &[],
    }
}

/// Hints of the longer words that a name holds.
fn of_longer_words(name: &str) -> Hints {
    let bytes = name.as_bytes();
    let mut hints = Hints::default();
    for (at, pair) in bytes.windows(2).enumerate() {
        let first = [pair[0].to_ascii_lowercase(), pair[1].to_ascii_lowercase()];
        for (word, hint) in longer(first) {
            if bytes[at..].get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes())) {
                hints = hints.or(*hint);
            }
        }
    }
    hints
}

/// Hints of one class or id name.
fn of_name(name: &str) -> Hints {
    if name.len() > 80 {
        return Hints::default();
    }
    let bytes = name.as_bytes();
    let mut hints = Hints::default();
    let mut start = 0;
    let mut low = String::new();
    for i in 0..=bytes.len() {
        let boundary = i == bytes.len()
            || !bytes[i].is_ascii_alphanumeric() && bytes[i] < 0x80
            || (i > start && bytes[i].is_ascii_uppercase() && bytes[i - 1].is_ascii_lowercase());
        if boundary {
            if i > start {
                low.clear();
                low.push_str(&name[start..i]);
                low.make_ascii_lowercase();
                hints = hints.or(of_segment(&low));
            }
            start = if bytes.get(i).is_some_and(|b| b.is_ascii_alphanumeric() || *b >= 0x80) { i } else { i + 1 };
        }
    }
    // `has-sidebar`, `no-ads`, `content-with-nav` speak about the page, not about this element.
    const REMARKS: [&str; 5] = ["-has-", "-with-", "-no-", "-without-", "-is-"];
    if !hints.is_none() && REMARKS.iter().any(|w| name.starts_with(&w[1..]) || name.contains(w)) {
        return Hints(hints.0 & (Hints::CONTENT.0 | Hints::LAYOUT.0));
    }
    hints = hints.or(of_longer_words(name));
    if hints.any(Hints::FOOTER) && ENDINGS.iter().any(|ending| name.contains(ending)) {
        hints = hints.or(Hints::ENDING);
    }
    // The dialog of a common consent tool.
    if ["ot-sdk", "ot-pc", "ot-cat", "ot-desc"].iter().any(|word| name.starts_with(word)) {
        hints = hints.or(Hints::CONSENT);
    }
    if name.eq_ignore_ascii_case("secondary") {
        hints = hints.or(Hints::SIDEBAR);
    }
    const READER_ONLY: [&str; 6] =
        ["sr-only", "visually-hidden", "screen-reader-text", "screen-reader-only", "visuallyhidden", "offscreen"];
    if hints.any(Hints::SEARCH) && name.to_ascii_lowercase().contains("result") {
        hints = Hints(hints.0 & !Hints::SEARCH.0);
    }
    // As a part of longer names, too.
    let is_for_readers = || {
        let low = name.to_ascii_lowercase();
        ["screen-reader", "screenreader", "reader-only"].iter().any(|word| low.contains(word))
    };
    if READER_ONLY.iter().any(|r| name.eq_ignore_ascii_case(r)) || name.contains("eader") && is_for_readers() {
        hints = hints.or(Hints::READER_ONLY);
    }
    hints
}

/// What the foot of an article or a post is called, as a part of longer names, too.
const ENDINGS: &[&str] = &["article-footer", "content-footer", "entry-footer", "post-footer"];

/// Names of what is hidden until a script shows it.
const HIDDEN: &[&str] = &[
    "hide",
    "hideAll",
    "hidden",
    "is-hidden",
    "js-hidden",
    "u-hidden",
    "display-none",
    "ipsHide",
    "ng-hide",
    "w-condition-invisible",
];
/// What such names end in.
const HIDDEN_ENDS: &[&str] = &["-display-none", "-display--none", "--hidden", "--is-hidden"];

/// Parts of the classes by which WordPress tells a post or a product from other elements.
const ENTRY: &[&str] = &["hentry", "status-publish"];
/// What the classes begin with that say there under which terms it is filed: `tag-meta-ads`, `product_cat-menus`.
const TERMS: &[&str] = &["category-", "tag-", "product_cat-", "product_tag-"];

/// Remembers hints by attribute value, and by the names in them: pages repeat the same few.
#[derive(Debug, Default)]
pub struct Cache<'a> {
    values: HashMap<&'a str, Hints>,
    names: HashMap<&'a str, Hints>,
}

impl<'a> Cache<'a> {
    /// Hints of a `class` or `id` value.
    pub fn of(&mut self, value: &'a str) -> Hints {
        if let Some(found) = self.values.get(value) {
            return *found;
        }
        let mut hints = Hints::default();
        let [mut related, mut products, mut none, mut some, mut hidden, mut by_width] = [false; 6];
        let is_entry = ENTRY.iter().any(|word| value.contains(word));
        for name in value.split_ascii_whitespace().take(24) {
            // What a post or a product is about, not what its element is for.
            if is_entry && TERMS.iter().any(|taxonomy| name.starts_with(taxonomy)) {
                continue;
            }
            hints = hints.or(*self.names.entry(name).or_insert_with(|| of_name(name)));
            related |= name == "related";
            products |= name == "products";
            none |= name == "d-none";
            some |= name.starts_with("d-") && name != "d-none";
            hidden |= HIDDEN.contains(&name) || HIDDEN_ENDS.iter().any(|end| name.ends_with(end));
            by_width |= name.bytes().any(|b| b == b':' || b == b'@');
        }
        // In two words, as the commonest software for shops has it.
        if related && products {
            hints = hints.or(Hints::OTHER_GOODS);
        }
        // Not shown at any width of the screen.
        if none && !some {
            hints = hints.or(Hints::READER_ONLY);
        }
        // What some width of the screen shows has another name beside it.
        if hidden && !by_width {
            hints = hints.or(Hints::HIDDEN);
        }
        self.values.insert(value, hints);
        hints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(value: &str) -> Hints {
        Cache::default().of(value)
    }

    #[test]
    fn names_are_split_into_words() {
        assert!(hints("site-footer").any(Hints::FOOTER));
        assert!(hints("CookieBanner").any(Hints::CONSENT));
        assert!(hints("ad_slot").any(Hints::AD));
        assert!(hints("postNavigation").any(Hints::NAV));
    }

    #[test]
    fn what_a_post_is_about_hints_nothing() {
        assert!(!hints("post type-post hentry category-advertising tag-meta-ads tag-gpt-5").any(Hints::AD));
        assert!(hints("product type-product status-publish product_cat-advertising").is_none());
        assert!(hints("post hentry ads").any(Hints::AD) && hints("tag-ads").any(Hints::AD));
    }

    #[test]
    fn what_forums_say_of_writers_and_consent_tools_of_cookies_is_known() {
        assert!(hints("message-userExtras").any(Hints::TOOLS) && hints("message-userTitle").any(Hints::WRITER));
        assert!(hints("ot-cat-header").any(Hints::CONSENT) && !hints("ottoman").any(Hints::CONSENT));
        assert!(hints("badge badge--sold-out").is_none(), "shops say so of goods");
        assert!(hints("dl.postprofile").any(Hints::WRITER) && hints("messageUser extraUserInfo").any(Hints::WRITER));
        assert!(hints("post-footer").any(Hints::ENDING) && !hints("site-footer").any(Hints::ENDING));
        assert!(hints("related products").any(Hints::OTHER_GOODS) && hints("c-up-sells").any(Hints::OTHER_GOODS));
    }

    #[test]
    fn what_no_screen_shows_is_for_other_readers() {
        assert!(
            hints("u-visuallyHidden").any(Hints::READER_ONLY) && hints("a-visually-hidden").any(Hints::READER_ONLY)
        );
        assert!(hints("d-none").any(Hints::READER_ONLY) && hints("u-srOnly").any(Hints::READER_ONLY));
        assert!(hints("styles_ndsScreenReaderOnly__JErIH").any(Hints::READER_ONLY));
        assert!(
            hints("u-pwa-screen-reader-only").any(Hints::READER_ONLY) && !hints("e-reader").any(Hints::READER_ONLY)
        );
        assert!(!hints("d-none d-md-block").any(Hints::READER_ONLY), "shown from some width on");
        assert!(hints("row hide").any(Hints::HIDDEN) && !hints("overflow-hidden").any(Hints::HIDDEN));
        assert!(hints("wt-display-none").any(Hints::HIDDEN) && hints("field--hidden").any(Hints::HIDDEN));
        assert!(hints("menu ipsHide").any(Hints::HIDDEN) && !hints("label-hidden").any(Hints::HIDDEN));
        assert!(!hints("hidden md:flex").any(Hints::HIDDEN) && !hints("hide show@medium").any(Hints::HIDDEN));
    }

    #[test]
    fn parts_of_words_and_remarks_about_the_page_hint_nothing() {
        assert!(hints("shadow header2 gradient adaptive").is_none());
        assert!(!hints("has-sidebar").any(Hints::SIDEBAR));
        assert!(!hints("no-ads").any(Hints::AD));
    }
}
