//! What words and names hint at, for the facts of blocks. Hints only; what they are worth is learned.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Number of kinds of words.
pub const TEXT_KINDS: usize = 12;

/// Words by kind; a kind is its place in the list.
const TEXT: [&str; TEXT_KINDS] = [
    // Words that hold sentences together, of the most written languages.
    "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which you were her she will would their we been has more if who so said what its about than into them can only other some could time these may then do first any my such like our over out up me most your how when \
        der die und das den von zu ist mit sich des auf für nicht im dem ein eine als auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis mehr durch man sein wurde \
        de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont avec ou son aux être cette ont mais comme nous vous leur \
        el los las del se por con una su para es al lo como más o pero sus le ha sin sobre este ya entre cuando todo esta ser son dos también fue \
        il di che non è un per sono una con del si della anche da più alla nel dei ma \
        os da do em um para com não uma no na mais das dos como foi ao ele seu sua ou quando muito \
        het een van en op te dat voor met zijn niet aan er om ook als dan maar bij nog uit \
        и в не на я быть он с что а по это она этот к но они мы весь который из у то за от",
    // What a button asks for.
    "buy cart basket checkout shop subscribe sign signup register join download order learn discover explore view see start try contact call request quote apply donate add enquire book kaufen warenkorb jetzt mehr anmelden acheter panier commander comprar carrito acquista carrello",
    // Law and the page's foot.
    "copyright © ® rights reserved privacy policy terms conditions cookie cookies disclaimer imprint impressum datenschutz agb sitemap accessibility trademark trademarks legal gdpr consent preferences mentions légales confidentialité privacidad privacybeleid",
    // Accounts.
    "login log sign account password username email e-mail register registered forgot member members logged anmelden connexion",
    // Places where things are shared.
    "facebook twitter instagram linkedin pinterest whatsapp youtube tiktok reddit telegram tumblr share tweet pin follow followers rss tweeten teilen partager compartir",
    // What stands at posts in a forum.
    "reply replies quote report like likes liked posts post posted joined thread threads topic views view solved answer answers votes upvote comment comments edited permalink moderator junior senior reputation reactions antworten répondre",
    // Months and other words of dates.
    "january february march april may june july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec januar februar märz mai juni juli oktober dezember janvier février mars avril juin juillet août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre ago days hours minutes yesterday today monday tuesday wednesday thursday friday saturday sunday",
    // Trade: price and delivery.
    "price prices sale sold stock quantity qty size color colour shipping delivery returns return refund free off save discount reviews review rating ratings stars out-of-stock sku preis versand lieferung größe prix livraison precio envío",
    // More of the like.
    "more related recommended popular trending latest recent similar read next previous prev also all categories category tags tag archives archive newsletter newsletters featured weitere ähnliche mehr aussi lire relacionados",
    // What is said about an article.
    "by author written updated published min read reading staff editor reporter von par por posted",
    // Filters and sorting.
    "filter filters sort sorted sorting refine results clear apply showing items per page relevance ascending descending reset compare filtern sortieren trier filtrer ordenar",
    // What a thing is described by.
    "description details specifications specification specs features ingredients materials material dimensions weight overview about benefits includes beschreibung produktdetails eigenschaften descripción caractéristiques",
];

/// Number of kinds of names.
pub const NAME_KINDS: usize = 21;

/// Words by kind; a kind is its place in the list.
const NAME: [&str; NAME_KINDS] = [
    // The description of a thing.
    "description desc details detail overview summary rte richtext wysiwyg prose markdown specs specification specifications ingredients features accordion tabs tab panel",
    // Its price and how to get it.
    "price prices pricing cart basket atc checkout buy purchase quantity qty swatch swatches variant variants option options size sizes shipping delivery",
    // What readers think of it.
    "review reviews rating ratings stars yotpo bazaarvoice bv stamped okendo judgeme jdgm trustpilot testimonial testimonials feedback qna",
    // What is shown one after another.
    "carousel slider slide slides swiper slick splide flickity glide owl slideshow gallery",
    // One of many alike.
    "card cards tile tiles teaser teasers item items listing result results product products",
    // Facets.
    "filter filters facet facets sort sorting refine refinement toolbar layered",
    // The first thing seen.
    "hero jumbotron intro lead lede headline title heading subtitle kicker standfirst dek",
    // Byline and date.
    "meta byline author date time timestamp published info posted infoline credit caption",
    // People in forums.
    "user username avatar member profile userinfo poster userdetails messageuserinfo names creator signature userextras",
    // What they say.
    "post posts message messages reply replies thread topic answer question cooked postbody bbwrapper crawler conversation",
    // Counts.
    "count counts counter stats stat views likes votes badge badges label labels",
    // Promotion.
    "promo promos promotion cta banner announcement offer offers upsell cross crosssell alert notice notification marquee usp trust",
    // Boxes at the side.
    "widget widgets block module box panel-widget textwidget",
    // Forms.
    "form field fields input inputs fieldset captcha contact enquiry hubspot hs gform wpcf7 marketo",
    // Shown on demand or twice.
    "hidden hide collapse collapsed invisible mobile desktop cloned duplicate clone lazy template placeholder skeleton print",
    // Media.
    "image images img media video photo figure thumb thumbnail picture audio player map",
    // Tags and categories.
    "tag tags category categories cat topics taxonomy labels keywords terms hashtag",
    // Ways on.
    "more next prev previous read readmore related recommended popular latest trending similar also recent upnext",
    // Questions and answers.
    "faq faqs question questions answer answers qa",
    // Blocks of page builders.
    "section row column wp elementor shopify vc",
    // Languages and regions.
    "lang language languages locale country region currency translate switcher picker",
];

/// A bit for each kind, by word.
fn table(kinds: &[&'static str]) -> HashMap<&'static str, u32> {
    let mut table = HashMap::new();
    for (bit, words) in kinds.iter().enumerate() {
        for word in words.split_ascii_whitespace() {
            *table.entry(word).or_insert(0) |= 1 << bit;
        }
    }
    table
}

static BY_WORD: LazyLock<HashMap<&'static str, u32>> = LazyLock::new(|| table(&TEXT));
static BY_NAME: LazyLock<HashMap<&'static str, u32>> = LazyLock::new(|| table(&NAME));

/// Kinds of a word in lower case.
pub fn of_text(word: &str) -> u32 {
    BY_WORD.get(word).copied().unwrap_or(0)
}

/// Kinds of a `class` or `id`.
pub fn of_name(value: &str) -> u32 {
    let mut kinds = 0;
    let mut low = String::new();
    for name in value.split_ascii_whitespace().take(24) {
        if name.len() > 80 {
            continue;
        }
        let bytes = name.as_bytes();
        let mut start = 0;
        for i in 0..=bytes.len() {
            let is_end = i == bytes.len()
                || !bytes[i].is_ascii_alphanumeric() && bytes[i] < 0x80
                || i > start && bytes[i].is_ascii_uppercase() && bytes[i - 1].is_ascii_lowercase();
            if is_end {
                if i > start + 1 {
                    low.clear();
                    low.push_str(&name[start..i]);
                    low.make_ascii_lowercase();
                    kinds |= BY_NAME.get(low.as_str()).copied().unwrap_or(0);
                }
                start = if bytes.get(i).is_some_and(|b| b.is_ascii_alphanumeric() || *b >= 0x80) { i } else { i + 1 };
            }
        }
    }
    kinds
}

/// Remembers kinds by attribute value: pages repeat the same few.
#[derive(Debug, Default)]
pub struct Names<'a>(HashMap<&'a str, u32>);

impl<'a> Names<'a> {
    /// Kinds of a `class` or `id` value.
    pub fn of(&mut self, value: &'a str) -> u32 {
        *self.0.entry(value).or_insert_with(|| of_name(value))
    }
}
