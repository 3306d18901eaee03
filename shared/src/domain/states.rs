//! How the states of a thing are declared: the words that are stored, and the moves from one to the next.
//!
//! The statements of the store take both from here. `page_state!(Queued)` is the word as a part of SQL;
//! `page_move!(Claim from)` and `page_move!(Claim to)` are the words that a move leaves and reaches, so that a statement
//! cannot make a move that is not declared. Words stand in the statements as text, because indexes hold only some states.

macro_rules! states {
    (in $module:ident; $(
        $(#[$doc:meta])*
        $name:ident as $word_sql:ident {
            $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+
        }
        $(#[$moves_doc:meta])*
        $moves:ident as $move_sql:ident {
            $($(#[$move_doc:meta])* $step:ident: $from:ident => $to:ident,)+
        }
    )+) => {$(
        $crate::domain::job::words! { $(#[$doc])* $name { $($(#[$variant_doc])* $variant = $word,)+ } }

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

        macro_rules! $word_sql { $(($variant) => { concat!("'", $word, "'") };)+ }
        pub(crate) use $word_sql;

        macro_rules! $move_sql {
            $(
                ($step from) => { $crate::domain::$module::$word_sql!($from) };
                ($step to) => { $crate::domain::$module::$word_sql!($to) };
            )+
        }
        pub(crate) use $move_sql;
    )+};
}
pub(super) use states;
