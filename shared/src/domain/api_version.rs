//! The versions of the API. Both are read into the same requests and answered from the same documents; what differs are
//! the names of options, their defaults and the shape of some answers (wire 26).

use super::words::words;

words! {
    /// The version that a call came through.
    #[derive(Default)]
    ApiVersion {
        /// What clients of before call, and the SDKs under `.v1`.
        V1 = "v1",
        #[default]
        V2 = "v2",
    }
}
