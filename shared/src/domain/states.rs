//! How the states of a thing are declared: the words that are stored, and the moves from one to the next.
//!
//! The statements of the store take both from here: `PageState::Queued.sql()` is the word as a part of SQL, and
//! `PageMove::Claim.from()` and `.to()` are the states that a move leaves and reaches. Words stand in the statements as
//! text, because indexes hold only some states.

macro_rules! states {
    ($(
        $(#[$doc:meta])*
        $name:ident {
            $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+
        }
        $(#[$moves_doc:meta])*
        $moves:ident {
            $($(#[$move_doc:meta])* $step:ident: $from:ident => $to:ident,)+
        }
    )+) => {$(
        $crate::domain::words::words! { $(#[$doc])* $name { $($(#[$variant_doc])* $variant = $word,)+ } }

        impl TryFrom<String> for $name {
            type Error = String;
            fn try_from(word: String) -> Result<Self, String> { word.parse() }
        }

        $(#[$moves_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $moves { $($(#[$move_doc])* $step,)+ }

        impl $moves {
            /// Every move there is.
            pub const ALL: &'static [$moves] = &[$($moves::$step,)+];

            /// The state it leaves.
            pub const fn from(self) -> $name { match self { $(Self::$step => $name::$from,)+ } }

            /// The state it reaches.
            pub const fn to(self) -> $name { match self { $(Self::$step => $name::$to,)+ } }
        }
    )+};
}
pub(super) use states;
