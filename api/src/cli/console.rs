//! `weir console link`: a link that signs in to the console once.

use clap::Subcommand;
use serde_json::json;
use url::Url;
use weir_shared::config::{BASE_URL, Settings, parse_base_url};
use weir_shared::domain::console::{self, Role};
use weir_shared::store::Db;
use weir_shared::store::console::sign_ins;

use super::database::team_named;
use super::output::{Output, complain};
use crate::http::connections;

#[derive(Subcommand)]
pub enum ConsoleCommand {
    /// Print a link that signs in once, within 10 minutes: as the operator unless a team is named.
    Link {
        /// Sign in as this team.
        #[arg(long)]
        team: Option<String>,
        /// See everything, change nothing.
        #[arg(long, conflicts_with = "team")]
        read_only: bool,
        /// Where the API is reached, as in http://127.0.0.1:3002; WEIR_PUBLIC_URL or WEIR_BIND unless it is given.
        #[arg(long, value_parser = base_url)]
        base: Option<Url>,
    },
}

fn base_url(text: &str) -> Result<Url, String> {
    parse_base_url(text).ok_or_else(|| format!("allowed is {BASE_URL}"))
}

/// Runs `weir console …`.
pub async fn run(command: ConsoleCommand, db: &Db, settings: &Settings, output: Output) -> anyhow::Result<()> {
    let ConsoleCommand::Link { team, read_only, base } = command;
    anyhow::ensure!(settings.api.console.is_on, "the console is off (WEIR_CONSOLE=off)");
    let (role, team) = match team {
        Some(name) => (Role::Team, Some(team_named(db, &name).await?.id)),
        None if read_only => (Role::Reader, None),
        None => (Role::Operator, None),
    };
    let secret = console::secret()?;
    let mut tx = db.begin().await?;
    let until = sign_ins::insert_link(&mut tx, &console::digest(&secret), role, team, db.now()).await?;
    tx.commit().await?;
    let base = base.or_else(|| settings.api.public_url.clone()).map(|url| url.to_string());
    let base = base.unwrap_or_else(|| {
        let (bound, here) = (settings.api.bind, connections::reached_here(settings.api.bind));
        if bound != here {
            complain(format_args!(
                "the API listens on every address ({bound}), and the link is for this machine: --base or WEIR_PUBLIC_URL \
                 name the address for others"
            ));
        }
        format!("http://{here}")
    });
    // A fragment is not sent with the request, so it is in nobody's log.
    let url = format!("{}/console/sign-in#{secret}", base.trim_end_matches('/'));
    output.show(&json!({"url": url, "role": role.as_str(), "expiresAt": until.to_iso()}), || url.clone());
    Ok(())
}
