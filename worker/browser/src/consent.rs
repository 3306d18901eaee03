//! Consent pop-ups, which screenshots do not show.

/// A style that takes consent pop-ups of well-known makers out of sight and gives the page its scrolling back.
pub(super) const STYLE: &str = "\
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
