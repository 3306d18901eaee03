//! Postgres's own programs for copies. They are told the address by their environment, which other users of the machine
//! cannot read, unlike arguments.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// Writes a copy of the database, as it is at one moment, to a file.
///
/// # Errors
/// When `pg_dump` is missing or fails; its own words are part of the error.
pub fn dump(url: &str, to: &Path) -> anyhow::Result<()> {
    let mut command = program("pg_dump", url)?;
    command.args(["--format=custom", "--no-owner", "--no-acl", "--no-comments", "--file"]).arg(to);
    run("pg_dump", command)
}

/// Brings such a copy to an empty database, whole or not at all.
///
/// # Errors
/// When `pg_restore` is missing or fails.
pub fn load(url: &str, from: &Path) -> anyhow::Result<()> {
    let mut command = program("pg_restore", url)?;
    let options: PgConnectOptions = url.parse().context("DATABASE_URL")?;
    // Without a name it would print the statements.
    command.arg("--dbname").arg(options.get_database().unwrap_or(options.get_username()));
    command.args(["--no-owner", "--no-acl", "--exit-on-error", "--single-transaction"]).arg(from);
    run("pg_restore", command)
}

fn program(name: &str, url: &str) -> anyhow::Result<Command> {
    let options: PgConnectOptions = url.parse().context("DATABASE_URL")?;
    let parts = url::Url::parse(url).context("DATABASE_URL")?;
    let parameter =
        |name: &str| parts.query_pairs().find(|(found, _)| found == name).map(|(_, value)| value.into_owned());
    let mut command = Command::new(name);
    command.arg("--no-password").stdin(Stdio::null()).stdout(Stdio::null());
    let host = options.get_socket().map_or_else(|| options.get_host().to_owned(), |path| path.display().to_string());
    command.env("PGHOST", host).env("PGPORT", options.get_port().to_string()).env("PGUSER", options.get_username());
    command.env("PGDATABASE", options.get_database().unwrap_or(options.get_username()));
    command.env("PGAPPNAME", "weir").env("PGSSLMODE", ssl_mode(options.get_ssl_mode()));
    let in_address = parts.password().map(percent_decoded).or_else(|| parameter("password"));
    if let Some(word) = in_address {
        command.env("PGPASSWORD", word);
    }
    for (name, variable) in [("sslrootcert", "PGSSLROOTCERT"), ("sslcert", "PGSSLCERT"), ("sslkey", "PGSSLKEY")] {
        if let Some(value) = parameter(name) {
            command.env(variable, value);
        }
    }
    Ok(command)
}

fn percent_decoded(text: &str) -> String {
    // The form's reader takes `+` for a space, which stands for itself in an address.
    let escaped = text.replace('+', "%2B");
    url::form_urlencoded::parse(escaped.as_bytes()).next().map_or_else(String::new, |(word, _)| word.into_owned())
}

fn ssl_mode(mode: PgSslMode) -> &'static str {
    match mode {
        PgSslMode::Disable => "disable",
        PgSslMode::Allow => "allow",
        PgSslMode::Prefer => "prefer",
        PgSslMode::Require => "require",
        PgSslMode::VerifyCa => "verify-ca",
        PgSslMode::VerifyFull => "verify-full",
    }
}

fn run(name: &str, mut command: Command) -> anyhow::Result<()> {
    let output = match command.stderr(Stdio::piped()).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!(
                "{name} is missing: install Postgres's programs (package postgresql-client), not older than the server"
            )
        }
        output => output.with_context(|| format!("cannot run {name}"))?,
    };
    if !output.status.success() {
        bail!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_password_is_in_the_environment_and_not_among_the_arguments() {
        let url = "postgres://we%40ir:a%2Bb+c%25@db.test:6432/pages?sslmode=require&sslrootcert=/ca.pem";
        let command = program("pg_dump", url).unwrap();
        let variable = |name: &str| {
            let found = command.get_envs().find(|(variable, _)| *variable == name);
            found.and_then(|(_, value)| value?.to_str()).map(str::to_owned)
        };
        let names = ["PGUSER", "PGPASSWORD", "PGHOST", "PGPORT", "PGDATABASE", "PGSSLMODE", "PGSSLROOTCERT"];
        let expected = ["we@ir", "a+b+c%", "db.test", "6432", "pages", "require", "/ca.pem"];
        assert_eq!(names.map(|name| variable(name).unwrap()), expected);
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["--no-password"]);
        let command = program("pg_dump", "postgres://u@h/d?password=word").unwrap();
        assert!(command.get_envs().any(|(name, value)| name == "PGPASSWORD" && value.is_some_and(|v| v == "word")));
    }
}
