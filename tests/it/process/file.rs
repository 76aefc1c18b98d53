//! The data file: a disk that fails, a copy, a configuration that lost a name.

use std::fs;

use tambour::sandbox::OrderSketch;

use crate::process::fixture::{Delivery, World};

/// An order with a note that cannot be compressed much.
fn large(world: &World, id: u64) -> Delivery {
    let mut state = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let noise = (0..12_000).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:016x}", state)
    });
    let note = Some(noise.collect());
    let order = OrderSketch { note, ..world.annas_order(id, "10.00") };
    world.order(&order, "orders/create", &format!("w-{id}"))
}

/// Story: the disk takes no more. No delivery is acknowledged from then on, the process ends
/// with the code that tells the service manager to start it again, and the next one checks the
/// file before it goes on. What was acknowledged is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_write_ends_the_process_and_the_next_one_checks_the_file() {
    let world = World::new().await;
    let served = world.serve_on_full_disk(6 * 1024).await;
    let mut acknowledged = 0;
    let mut last = 200;
    for id in 1..200 {
        // The process may end before it answers.
        match served.try_post(&large(&world, id)).await.ok().map(|answered| answered.status) {
            Some(200) => acknowledged += 1,
            Some(status) => last = status,
            None => last = 0,
        }
        if last != 200 {
            break;
        }
    }
    assert!(acknowledged > 0 && (last == 503 || last == 0), "{acknowledged} acknowledged, then {last}");
    assert_eq!(served.died().await.code(), Some(70));
    let mark = world.path("data/tambour.failed");
    assert!(fs::read_to_string(&mark).unwrap().contains("the storage engine failed"));

    let again = world.serve().await;
    again.logged(1, |line| line.to_string().contains("the data file is whole")).await;
    again.logged(1, |line| line.to_string().contains("\"ready\"")).await;
    assert!(!mark.exists());
    let events = world.run(&["events", "--json", "--limit", "500"]).await.json();
    let stored = events["items"].as_array().map_or(0, Vec::len);
    assert!(stored >= acknowledged, "{stored} of {acknowledged}");
    again.stop().await;
}

/// Story: the folder is copied to a second machine, or beside the first, and both are started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_serves_only_after_a_take_over() {
    let world = World::new().await;
    world.serve().await.stop().await;
    let file = world.path("data/tambour.redb");
    // A copy in the same place: another inode under the same name.
    fs::copy(&file, world.path("copy")).unwrap();
    fs::rename(world.path("copy"), &file).unwrap();
    let refused = world.run(&["serve"]).await;
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("is a copy of another file of this host"), "{refused:?}");
    assert!(refused.stderr.contains("serve --take-over"), "{refused:?}");
    assert_eq!(world.run(&["tasks"]).await.code, Some(0), "a copy can be read");

    let taken = world.serve_with(&["--take-over"]).await;
    taken.logged(1, |line| line.to_string().contains("the data file is taken over")).await;
    taken.stop().await;
    world.serve().await.stop().await;
}

/// Story: somebody renames the shop's source. Every order would be a new one, under new keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_name_stops_serve_and_check_until_it_is_told_what_became_of_it() {
    let world = World::new().await;
    let served = world.serve().await;
    let order = world.annas_order(1001, "10.00");
    served.post(&world.order(&order, "orders/create", "w-1")).await;
    served.ended(1).await;
    world.configure("sources.shop", "sources.moscow");
    world.configure("source = \"shop\"", "source = \"moscow\"");
    let checked = world.run(&["check"]).await;
    assert_eq!(checked.code, Some(3), "the running one is asked: {checked:?}");
    served.stop().await;
    let refused = world.run(&["serve"]).await;
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("formerly = \"shop\"") && refused.stderr.contains("retire = [\"source shop\"]"));

    world.configure("[sources.moscow]", "[sources.moscow]\nformerly = \"shop\"");
    assert_eq!(world.run(&["check"]).await.code, Some(0));
    let again = world.serve().await;
    let mut repeat = world.order(&order, "orders/create", "w-1");
    for path in ["/in/moscow", "/in/shop"] {
        path.clone_into(&mut repeat.path);
        assert_eq!(again.post(&repeat).await.status, 200, "{path}");
    }
    let events = world.run(&["events", "--source", "moscow", "--json"]).await.json();
    assert_eq!(events["items"][0]["copies"], 2, "{events}");
    assert_eq!(world.sandbox.counts().leads, 1);
    again.stop().await;
}
