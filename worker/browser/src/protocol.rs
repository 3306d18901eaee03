//! The commands of the Chrome DevTools Protocol that are used, by domain, and of their answers what is read. Parameters
//! stand where a command is sent, as JSON; events are read by whoever waits for them.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

/// A command.
pub trait Method {
    /// As it goes over the wire.
    const NAME: &'static str;
    /// What is read of its answer.
    type ReturnObject: DeserializeOwned;
}

macro_rules! commands {
    ($($domain:ident { $($command:ident = $name:literal $(-> $answer:ty)?;)* })*) => {$(
        #[allow(non_snake_case, reason = "the protocol's own name of a domain")]
        pub mod $domain {
            $(
                #[doc = concat!("`", $name, "`")]
                #[derive(Debug)]
                pub struct $command;
                impl super::Method for $command {
                    const NAME: &'static str = $name;
                    type ReturnObject = commands!(@answer $($answer)?);
                }
            )*
        }
    )*};
    (@answer) => { super::IgnoredAny };
    (@answer $answer:ty) => { $answer };
}

commands! {
    Browser {
        GetVersion = "Browser.getVersion" -> super::Version;
        GrantPermissions = "Browser.grantPermissions";
        SetDownloadBehavior = "Browser.setDownloadBehavior";
    }
    Emulation {
        ClearDeviceMetricsOverride = "Emulation.clearDeviceMetricsOverride";
        SetDeviceMetricsOverride = "Emulation.setDeviceMetricsOverride";
        SetFocusEmulationEnabled = "Emulation.setFocusEmulationEnabled";
        SetGeolocationOverride = "Emulation.setGeolocationOverride";
        SetLocaleOverride = "Emulation.setLocaleOverride";
        SetTimezoneOverride = "Emulation.setTimezoneOverride";
        SetTouchEmulationEnabled = "Emulation.setTouchEmulationEnabled";
        SetUserAgentOverride = "Emulation.setUserAgentOverride";
    }
    Fetch {
        ContinueRequest = "Fetch.continueRequest";
        Enable = "Fetch.enable";
        FailRequest = "Fetch.failRequest";
    }
    IO {
        Close = "IO.close";
        Read = "IO.read";
    }
    Input {
        DispatchKeyEvent = "Input.dispatchKeyEvent";
        DispatchMouseEvent = "Input.dispatchMouseEvent";
        InsertText = "Input.insertText";
    }
    Inspector {
        Disable = "Inspector.disable";
        Enable = "Inspector.enable";
    }
    Network {
        DeleteCookies = "Network.deleteCookies";
        Enable = "Network.enable";
        GetResponseBody = "Network.getResponseBody" -> super::ResponseBody;
    }
    Page {
        AddScriptToEvaluateOnNewDocument = "Page.addScriptToEvaluateOnNewDocument" -> super::AddedScript;
        CaptureScreenshot = "Page.captureScreenshot";
        CreateIsolatedWorld = "Page.createIsolatedWorld";
        Disable = "Page.disable";
        Enable = "Page.enable";
        GetFrameTree = "Page.getFrameTree";
        HandleJavaScriptDialog = "Page.handleJavaScriptDialog";
        Navigate = "Page.navigate" -> super::Navigated;
        PrintToPDF = "Page.printToPDF";
        RemoveScriptToEvaluateOnNewDocument = "Page.removeScriptToEvaluateOnNewDocument";
    }
    Runtime {
        CallFunctionOn = "Runtime.callFunctionOn";
        Evaluate = "Runtime.evaluate" -> super::Evaluated;
        ReleaseObjectGroup = "Runtime.releaseObjectGroup";
        RunIfWaitingForDebugger = "Runtime.runIfWaitingForDebugger";
    }
    Security {
        Enable = "Security.enable";
        HandleCertificateError = "Security.handleCertificateError";
        SetOverrideCertificateErrors = "Security.setOverrideCertificateErrors";
    }
    Storage {
        SetCookies = "Storage.setCookies";
    }
    Target {
        AttachToTarget = "Target.attachToTarget" -> super::Attached;
        CreateBrowserContext = "Target.createBrowserContext" -> super::CreatedContext;
        CreateTarget = "Target.createTarget" -> super::CreatedTarget;
        DetachFromTarget = "Target.detachFromTarget";
        DisposeBrowserContext = "Target.disposeBrowserContext";
        SetAutoAttach = "Target.setAutoAttach";
    }
}

/// Which browser it is.
#[derive(Debug, Deserialize)]
pub struct Version {
    /// `HeadlessChrome/156.0.8078.79`
    pub product: String,
}

/// A body as the network brought it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseBody {
    pub body: String,
    pub base64_encoded: bool,
}

/// By what a script is taken back.
#[derive(Debug, Deserialize)]
pub struct AddedScript {
    pub identifier: String,
}

/// How a navigation began.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Navigated {
    /// Chromium's name of what went wrong, such as `net::ERR_ABORTED`.
    pub error_text: Option<String>,
}

/// What an expression gave.
#[derive(Debug, Deserialize)]
pub struct Evaluated {
    pub result: RemoteObject,
}

/// A value of the page.
#[derive(Debug, Deserialize)]
pub struct RemoteObject {
    /// There when it was asked for by value.
    pub value: Option<serde_json::Value>,
}

/// The session in which a target's commands and events travel.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attached {
    pub session_id: String,
}

/// A context of its own for cookies and storage.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedContext {
    pub browser_context_id: String,
}

/// A new tab.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedTarget {
    pub target_id: String,
}
