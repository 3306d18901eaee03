//! The life of an extractor that was learned.

use super::states::states;

states! {
    /// State of an extractor. While it is being learned it has no row of its own.
    ExtractorState {
        /// It agrees with what the model has read on several pages, and reads others.
        Validated = "validated",
        /// It reads no more.
        Retired = "retired",
    }
    /// How it goes on.
    ExtractorMove {
        /// It did not agree with the model's reading again, or newer ones took its place.
        Retire: Validated => Retired,
    }
}
