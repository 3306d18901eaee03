//! What a check of `weir doctor` finds.

/// What a check found.
pub enum Finding {
    /// As it should be.
    Good(String),
    /// It works, and something that is promised does not.
    Weak { what: String, mend: String },
    /// It does not work.
    Bad { what: String, mend: String },
}

impl Finding {
    pub fn good(what: impl Into<String>) -> Self {
        Self::Good(what.into())
    }

    pub fn weak(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::Weak { what: what.into(), mend: mend.into() }
    }

    pub fn bad(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::Bad { what: what.into(), mend: mend.into() }
    }

    pub fn parts(&self) -> (&'static str, &str, Option<&str>) {
        match self {
            Self::Good(what) => ("ok", what, None),
            Self::Weak { what, mend } => ("weak", what, Some(mend)),
            Self::Bad { what, mend } => ("FAIL", what, Some(mend)),
        }
    }
}

/// A check's name and what it found.
pub type Check = (&'static str, Finding);
