//! Keeps a [`RelayStage`] up until its input says anything or ends, and prints its addresses: for trying scripts against it, such as
//! those in `tests/relay`, and for looking at the live view.

use tokio::io::AsyncReadExt as _;
use weir_tests::RelayStage;

#[tokio::main]
async fn main() {
    let stage = RelayStage::start().await;
    println!("export CDP_URL='{}'", stage.cdp_url());
    println!("export LIVE_URL='{}'", stage.view_url());
    println!("export CONTROL_URL='{}'", stage.control_url());
    println!("export DIRECT_URL='ws://{}{}'", stage.chromium.address, stage.chromium.path);
    println!("export CHROMIUM_PID={}", stage.chromium.pid());
    println!("export DOWNLOADS='{}'", stage.chromium.folder.join("downloads").display());
    let _ = tokio::io::stdin().read_u8().await;
    stage.end("deleted");
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
}
