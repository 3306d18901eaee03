//! A Postgres database for one test, as the migrations leave it. They are applied once for all tests of a server, and the
//! result is copied file by file (PostgreSQL 15 and later can), which takes a tenth of the time where the server writes to
//! memory. Crates whose tests need databases include this file: it knows nothing of theirs.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

/// Makes a database of this name on a server, and returns its address. `migrate` brings a database to its shape, where no
/// test has done so yet.
pub async fn create(server: &str, name: &str, migrate: impl AsyncFnOnce(String)) -> String {
    let (base, _) = server.rsplit_once('/').expect("the address names a database");
    let mut admin = PgConnection::connect(server).await.expect("the server of the tests answers");
    let template = format!("weir_template_{:016x}", digest());
    if !exists(&mut admin, &template).await {
        let draft = format!("{name}_draft");
        run(&mut admin, format!("CREATE DATABASE {draft}")).await.expect("databases may be made");
        migrate(format!("{base}/{draft}")).await;
        put_in_place(&mut admin, &draft, &template).await;
    }
    run(&mut admin, format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY"))
        .await
        .expect("the template can be copied");
    admin.close().await.expect("the server ends a connection");
    format!("{base}/{name}")
}

/// Gives a draft the template's name, unless another test was faster. The server may take a moment to let go of the
/// connections that migrated it.
async fn put_in_place(admin: &mut PgConnection, draft: &str, template: &str) {
    for _ in 0..100 {
        if run(admin, format!("ALTER DATABASE {draft} RENAME TO {template}")).await.is_ok() {
            return;
        }
        if exists(admin, template).await {
            run(admin, format!("DROP DATABASE {draft} WITH (FORCE)")).await.expect("the draft can be dropped");
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{draft} cannot be renamed to {template}");
}

async fn exists(admin: &mut PgConnection, name: &str) -> bool {
    let found = sqlx::query("SELECT 1 FROM pg_database WHERE datname = $1").bind(name).fetch_optional(admin).await;
    found.expect("the server says which databases there are").is_some()
}

async fn run(admin: &mut PgConnection, sql: String) -> sqlx::Result<()> {
    sqlx::query(AssertSqlSafe(sql)).execute(admin).await.map(drop)
}

/// Of the names and texts of the migrations: a server may outlive a change of them.
fn digest() -> u64 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations/postgres");
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.expect("a folder can be listed").path()).collect();
    paths.sort();
    let mut digest = DefaultHasher::new();
    for path in paths {
        path.file_name().hash(&mut digest);
        std::fs::read(&path).expect("a migration can be read").hash(&mut digest);
    }
    digest.finish()
}
