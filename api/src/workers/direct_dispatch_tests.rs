//! Workers that answer in every way there is, and what the API makes of it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Mutex;

use actix_web::{App, HttpResponse, HttpServer, web};
use futures_util::FutureExt as _;
use weir_shared::domain::api_version::ApiVersion;
use weir_shared::domain::node::NodeState;
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::ids::{JobId, PageId, TeamId};
use weir_shared::store::contents::version::Body;
use weir_shared::time::Timestamp;
use weir_shared::worker_api::direct::PATH;

use super::*;
use crate::service_tests::Api;

/// What the worker does with the next scrapes.
#[derive(Clone, Copy, PartialEq)]
enum Behaviour {
    Document,
    Ended,
    Full,
    Strange,
    Broken,
    Hang,
}

struct Bench {
    api: Api,
    dispatch: DirectDispatch,
    behaviour: web::Data<Mutex<(Behaviour, usize)>>,
}

impl Bench {
    /// One worker with two slots. Without `listens` there is nothing at its address.
    async fn start(behaviour: Behaviour, listens: bool) -> Self {
        let api = Api::start(&[]).await;
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let behaviour = web::Data::new(Mutex::new((behaviour, 0)));
        if listens {
            let data = behaviour.clone();
            let server = HttpServer::new(move || App::new().app_data(data.clone()).route(PATH, web::post().to(answer)))
                .workers(1)
                .disable_signals()
                .listen(socket)
                .unwrap();
            tokio::spawn(server.run());
        } else {
            drop(socket);
        }
        let db = &api.state.db;
        let now = db.now();
        let node = NodeRow {
            id: WorkerId::new(),
            name: "worker".into(),
            host: "host".into(),
            pid: 1,
            address,
            state: NodeState::Live,
            slots: 2,
            session_slots: 0,
            sessions_refused: None,
            started_at: now,
            heartbeat_at: now,
        };
        let mut tx = db.begin().await.unwrap();
        nodes::insert(&mut tx, &node).await.unwrap();
        tx.commit().await.unwrap();
        let dispatch = DirectDispatch::new(db.clone(), Arc::clone(&api.state.workers), Handle::current());
        assert!(dispatch.offer(&scrape()).is_none(), "the workers are not known yet");
        read(Arc::clone(&dispatch.known), db.clone()).await;
        Self { api, dispatch, behaviour }
    }

    fn set(&self, behaviour: Behaviour) {
        self.behaviour.lock().unwrap().0 = behaviour;
    }

    /// Scrapes that the worker has seen.
    fn seen(&self) -> usize {
        self.behaviour.lock().unwrap().1
    }

    async fn send(&self) -> Dispatched {
        self.dispatch.offer(&scrape()).expect("the worker has a slot").await
    }
}

fn scrape() -> DirectScrape {
    let now = Timestamp(1_000_000_000_000);
    DirectScrape {
        job: JobId::new(),
        page: PageId::new(),
        team: TeamId::new(),
        key: None,
        options: ScrapeOptions::default(),
        url: "http://site.test/".into(),
        target: "http://site.test/".into(),
        origin: None,
        version: ApiVersion::V2,
        created_at: now,
        expires_at: now.plus_ms(60_000),
    }
}

async fn answer(behaviour: web::Data<Mutex<(Behaviour, usize)>>, scrape: web::Json<DirectScrape>) -> HttpResponse {
    let behaviour = {
        let mut behaviour = behaviour.lock().unwrap();
        behaviour.1 += 1;
        behaviour.0
    };
    match behaviour {
        Behaviour::Document => {
            let text = serde_json::json!({"markdown": scrape.url});
            let encoded = documents::encode(&text).unwrap();
            let Body::Inline(packed) = encoded.body else { panic!("it is small") };
            HttpResponse::Ok().insert_header((SIZE_HEADER, encoded.size)).body(packed)
        }
        Behaviour::Ended => HttpResponse::NoContent().finish(),
        Behaviour::Full => HttpResponse::ServiceUnavailable().finish(),
        Behaviour::Strange => HttpResponse::NotFound().finish(),
        Behaviour::Broken => panic!("a worker's fault"),
        Behaviour::Hang => std::future::pending().await,
    }
}

#[tokio::test]
async fn a_worker_answers_with_the_document_or_that_it_has_ended() {
    let bench = Bench::start(Behaviour::Document, true).await;
    for _ in 0..3 {
        match bench.send().await {
            Dispatched::Document(document) => assert_eq!(document.get(), r#"{"markdown":"http://site.test/"}"#),
            other => panic!("{other:?}"),
        }
    }
    bench.set(Behaviour::Ended);
    assert!(matches!(bench.send().await, Dispatched::Ended));
    assert_eq!(bench.seen(), 4);
}

#[tokio::test]
async fn a_worker_without_a_slot_is_asked_again_a_moment_later() {
    let bench = Bench::start(Behaviour::Full, true).await;
    assert!(matches!(bench.send().await, Dispatched::Refused));
    assert!(bench.dispatch.offer(&scrape()).is_none());
    bench.api.state.db.clock().advance(FULL * 2);
    bench.set(Behaviour::Document);
    assert!(matches!(bench.send().await, Dispatched::Document(_)));
}

#[tokio::test]
async fn a_worker_that_does_not_take_scrapes_is_left_alone() {
    for (behaviour, listens) in [(Behaviour::Strange, true), (Behaviour::Strange, false)] {
        let bench = Bench::start(behaviour, listens).await;
        assert!(matches!(bench.send().await, Dispatched::Refused));
        bench.api.state.db.clock().advance(FULL * 2);
        assert!(bench.dispatch.offer(&scrape()).is_none());
    }
}

#[tokio::test]
async fn a_broken_connection_tells_nothing() {
    let bench = Bench::start(Behaviour::Broken, true).await;
    assert!(matches!(bench.send().await, Dispatched::Unknown));
    bench.set(Behaviour::Document);
    assert!(matches!(bench.send().await, Dispatched::Document(_)));
}

#[tokio::test]
async fn a_worker_is_offered_no_more_than_its_slots() {
    let bench = Bench::start(Behaviour::Hang, true).await;
    let mut waiting: Vec<_> = (0..2).map(|_| bench.dispatch.offer(&scrape()).unwrap()).collect();
    assert!(bench.dispatch.offer(&scrape()).is_none());
    assert!((&mut waiting[0]).now_or_never().is_none());
    waiting.pop();
    assert!(bench.dispatch.offer(&scrape()).is_some(), "a caller hung up");
}

#[tokio::test]
async fn what_is_too_long_takes_the_queue() {
    let bench = Bench::start(Behaviour::Document, true).await;
    let long = DirectScrape { origin: Some("x".repeat(LIMIT)), ..scrape() };
    assert!(bench.dispatch.offer(&long).is_none());
    assert!(bench.dispatch.offer(&scrape()).is_some());
}
