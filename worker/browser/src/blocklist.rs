//! Ad and tracker hosts that pages do not get to, and consent pop-ups that screenshots do not show.
//!
//! A list of our own: the hosts that most pages load for advertising, measuring and session recording.
//! Short on purpose. Hosts that also serve content (CDNs, video, maps, fonts) are not in it.

/// Registrable names or host suffixes; a host matches when it is one of them or ends in `.` and one.
const HOSTS: &[&str] = &[
    "2mdn.net",
    "33across.com",
    "3lift.com",
    "abtasty.com",
    "adcolony.com",
    "addthis.com",
    "adform.net",
    "adjust.com",
    "admob.com",
    "adnxs.com",
    "adroll.com",
    "ads-twitter.com",
    "adsafeprotected.com",
    "adservice.google.com",
    "adsrvr.org",
    "adsymptotic.com",
    "adtechus.com",
    "advertising.com",
    "agkn.com",
    "amazon-adsystem.com",
    "amplitude.com",
    "analytics.google.com",
    "analytics.tiktok.com",
    "analytics.twitter.com",
    "analytics.yahoo.com",
    "appsflyer.com",
    "bat.bing.com",
    "bidswitch.net",
    "bizographics.com",
    "bluekai.com",
    "bounceexchange.com",
    "branch.io",
    "branch.link",
    "brealtime.com",
    "bugsnag.com",
    "casalemedia.com",
    "cdn.mxpnl.com",
    "chartbeat.com",
    "chartbeat.net",
    "clarity.ms",
    "clicktale.net",
    "connect.facebook.net",
    "contextweb.com",
    "crazyegg.com",
    "criteo.com",
    "criteo.net",
    "crwdcntrl.net",
    "demdex.net",
    "dotmetrics.net",
    "doubleclick.net",
    "doubleverify.com",
    "effectivemeasure.net",
    "everesttech.net",
    "exelator.com",
    "exponential.com",
    "eyeota.net",
    "flashtalking.com",
    "fullstory.com",
    "gemius.pl",
    "go-mpulse.net",
    "google-analytics.com",
    "googleadservices.com",
    "googlesyndication.com",
    "googletagmanager.com",
    "googletagservices.com",
    "gumgum.com",
    "hotjar.com",
    "hotjar.io",
    "hs-analytics.net",
    "imrworldwide.com",
    "indexww.com",
    "inmobi.com",
    "innovid.com",
    "ipredictive.com",
    "js-agent.newrelic.com",
    "bam.nr-data.net",
    "krxd.net",
    "liadm.com",
    "lijit.com",
    "linkedin-ei.com",
    "liveramp.com",
    "px.ads.linkedin.com",
    "snap.licdn.com",
    "lkqd.net",
    "logrocket.com",
    "lr-ingest.io",
    "luckyorange.com",
    "mathtag.com",
    "mc.yandex.ru",
    "mediavoice.com",
    "mgid.com",
    "mixpanel.com",
    "moatads.com",
    "mookie1.com",
    "mouseflow.com",
    "mparticle.com",
    "narrative.io",
    "newrelic.com",
    "omtrdc.net",
    "onaudience.com",
    "openx.net",
    "optimizely.com",
    "outbrain.com",
    "outbrainimg.com",
    "parsely.com",
    "permutive.com",
    "permutive.app",
    "pippio.com",
    "popads.net",
    "propellerads.com",
    "pubmatic.com",
    "pubmine.com",
    "quantserve.com",
    "quantcount.com",
    "revcontent.com",
    "rfihub.com",
    "rlcdn.com",
    "rubiconproject.com",
    "samba.tv",
    "sc-static.net",
    "scorecardresearch.com",
    "segment.com",
    "segment.io",
    "serving-sys.com",
    "sharethis.com",
    "sharethrough.com",
    "simpli.fi",
    "sitescout.com",
    "skimresources.com",
    "smartadserver.com",
    "smartlook.com",
    "sonobi.com",
    "spotxchange.com",
    "springserve.com",
    "statcounter.com",
    "stickyadstv.com",
    "taboola.com",
    "tapad.com",
    "teads.tv",
    "tiqcdn.com",
    "tr.snapchat.com",
    "trafficjunky.net",
    "tremorhub.com",
    "turn.com",
    "undertone.com",
    "uservoice.com",
    "viglink.com",
    "visualwebsiteoptimizer.com",
    "w55c.net",
    "webtrends.com",
    "yieldlab.net",
    "yieldmo.com",
    "zedo.com",
    "zemanta.com",
    "zopim.com",
];

/// Whether requests to `host` are refused when ads are blocked.
pub fn is_ad_host(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    HOSTS.iter().any(|name| {
        host.len() >= name.len()
            && host.is_char_boundary(host.len() - name.len())
            && host[host.len() - name.len()..].eq_ignore_ascii_case(name)
            && (host.len() == name.len() || host.as_bytes()[host.len() - name.len() - 1] == b'.')
    })
}

/// Patterns for the browser's request filter, `*` standing for any text. They let more through than
/// [`is_ad_host`] refuses (look-alikes, query strings), which then has the last word.
pub(super) fn url_patterns() -> impl Iterator<Item = String> {
    HOSTS.iter().map(|name| format!("*{name}/*"))
}

/// A style that takes consent pop-ups of well-known makers out of sight and gives the page its scrolling back.
pub(super) const CONSENT_STYLE: &str = "\
#onetrust-consent-sdk,#onetrust-banner-sdk,#CybotCookiebotDialog,#CybotCookiebotDialogBodyUnderlay,#usercentrics-root,\
#usercentrics-cmp-ui,#cmpbox,#cmpbox2,#cmpwrapper,#didomi-host,.didomi-popup-backdrop,#qc-cmp2-container,.qc-cmp-ui-container,\
#truste-consent-track,#trustarc-banner-overlay,.truste_overlay,.truste_box_overlay,#consent_blackbar,#sp-cc,\
[id^=sp_message_container],.fc-consent-root,.osano-cm-window,.osano-cm-dialog,#iubenda-cs-banner,.cky-consent-container,\
.cky-overlay,#cookie-law-info-bar,#cookiescript_injected,#cookiescript_injected_wrapper,.cc-window,.cc-banner,.cc-grower,\
#cookie-notice,#cookieConsent,#cookie-consent,#cookie-banner,#cookieBanner,#cookies-banner,.cookie-banner,.cookie-consent,\
.cookie-notice,.cookies-banner,.cookie-bar,#gdpr-cookie-notice,#gdpr-consent,.gdpr-banner,#BorlabsCookieBox,#klaro,.klaro .cookie-modal,\
.cmplz-cookiebanner,#tarteaucitronRoot,#axeptio_overlay,#ccc,#shopify-pc__banner,#hs-eu-cookie-confirmation,#moove_gdpr_cookie_info_bar,\
.termly-styles-root,#termly-code-snippet-support,.evidon-banner,#_evidon_banner,#ez-cookie-dialog-wrapper,#CookieReportsPanel,\
#cookie-information-template-wrapper,#coiOverlay,.js-consent-banner,#ketch-banner,#transcend-consent-manager\
{display:none!important}html,body{overflow:auto!important}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_refused_with_its_subdomains_and_its_lookalikes_are_not() {
        assert!(is_ad_host("doubleclick.net"));
        assert!(is_ad_host("ads.g.DoubleClick.net"));
        assert!(!is_ad_host("notdoubleclick.net"));
        assert!(!is_ad_host("doubleclick.net.example.com"));
        assert!(!is_ad_host("net"));
    }

    #[test]
    fn the_list_holds_no_name_twice_and_only_lower_case() {
        let mut seen = std::collections::HashSet::new();
        for name in HOSTS {
            assert!(seen.insert(name), "{name} stands twice");
            assert_eq!(*name, name.to_ascii_lowercase());
        }
    }
}
