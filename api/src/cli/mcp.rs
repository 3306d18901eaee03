//! `weir mcp`: the tools of a Weir for programs that start their servers themselves. Standard output is the protocol's;
//! nothing else may be printed there.

use anyhow::Context;
use rmcp::ServiceExt;
use weir_shared::config::McpSettings;

use super::output::complain;
use crate::mcp::{Server, Weir};
use crate::routes::operations;

/// Answers until the client closes standard input.
///
/// # Errors
/// When the key cannot be sent, or the client does not speak the protocol.
pub async fn run(settings: &McpSettings) -> anyhow::Result<()> {
    let weir = Weir::at(settings)?;
    if let (None, Some(url)) = (&settings.key, weir.named()) {
        complain(format_args!("WEIR_KEY is not set: {url} is called without a key, and answers if it asks for none"));
    }
    let server = Server::of_user(weir, operations);
    let running = server.serve(rmcp::transport::stdio()).await.context("the client")?;
    running.waiting().await.context("the protocol")?;
    Ok(())
}
