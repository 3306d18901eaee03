//! What is one site: registered domains and public suffixes, by Mozilla's list.
//!
//! The list is code, some ten thousand functions that are inlined into whatever asks it, and again into each part that the
//! compiler cuts a crate into. A crate of its own, whose functions are never inlined, compiles it once. The list itself is
//! asked nowhere else.
//!
//! Names are in lower case and in their ASCII form, as parsed addresses have them, without the dot of the root.

/// What somebody can register, with one label before its suffix: `example.co.uk` for `www.example.co.uk`. `None` for a
/// suffix itself and for an empty name. A top level that is not listed counts as a suffix, so that `a.b.internal` is of
/// `b.internal`.
#[inline(never)]
pub fn registered_domain(host: &str) -> Option<&str> {
    psl::domain_str(host)
}

/// What anybody may have a name below (`co.uk`, `github.io`), as far as the list has it: `None` where the top level is not
/// listed, as that of `file.txt`.
#[inline(never)]
pub fn listed_suffix(host: &str) -> Option<&str> {
    psl::suffix(host.as_bytes()).filter(|suffix| suffix.is_known())?;
    psl::suffix_str(host)
}

/// Whether anybody may have a name below this one, as below `co.uk`. A top level that is not listed is taken for one.
#[inline(never)]
pub fn is_public_suffix(domain: &str) -> bool {
    psl::suffix_str(domain) == Some(domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registered_domain_is_one_label_below_its_suffix() {
        assert_eq!(registered_domain("www.example.co.uk"), Some("example.co.uk"));
        assert_eq!(registered_domain("who.github.io"), Some("who.github.io"));
        assert_eq!(registered_domain("github.io"), None, "a suffix itself is nobody's");
        assert_eq!(registered_domain("a.b.internal"), Some("b.internal"));
        assert_eq!(registered_domain(""), None);
    }

    #[test]
    fn only_listed_suffixes_are_known() {
        assert_eq!(listed_suffix("www.example.co.uk"), Some("co.uk"));
        assert_eq!(listed_suffix("github.io"), Some("github.io"));
        assert_eq!(listed_suffix("file.txt"), None);
        assert_eq!(listed_suffix(""), None);
    }

    #[test]
    fn an_unlisted_top_level_is_a_suffix_too() {
        assert!(is_public_suffix("co.uk") && is_public_suffix("github.io") && is_public_suffix("internal"));
        assert!(!is_public_suffix("example.com") && !is_public_suffix("b.internal"));
    }
}
