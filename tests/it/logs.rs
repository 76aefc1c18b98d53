//! What stands in the log when a person must act.

use std::io;
use std::sync::{Arc, Mutex};

use tambour::sandbox::{Fault, Operation, OrderSketch, When};

use crate::rig::{Rig, START, Setup};

/// The log in memory.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines at error level of one order's run until it stands still.
fn errors(order: &OrderSketch, first_create: Option<Fault>) -> Vec<String> {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(log, || {
        let mut rig = Rig::new(Setup::default());
        if let Some(fault) = first_create {
            rig.crm.inject(Operation::ContactCreate, When::Nth(1), fault);
        }
        rig.order("orders/create", order);
        rig.run_for(std::time::Duration::from_secs(30));
    });
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    text.lines().filter(|line| line.contains("ERROR")).map(str::to_owned).collect()
}

/// Story: an order in another currency. The log says so at error level, with the command to type.
#[test]
fn a_dead_task_is_an_error_with_a_command() {
    let phone = Some("+79000000001".to_owned());
    let order = OrderSketch { phone, currency: "USD".to_owned(), ..OrderSketch::new(7, "#7", "1.00", START) };
    let [line] = errors(&order, None).try_into().unwrap();
    assert!(line.contains("wrong_currency") && line.contains("tambour trace t1"), "{line}");
    assert!(!line.contains("9000000001"), "{line}");
}

/// Story: the token is revoked. One line names the command that brings the target back.
#[test]
fn a_held_target_is_an_error_with_a_command() {
    let order = OrderSketch { phone: Some("+79000000001".to_owned()), ..OrderSketch::new(7, "#7", "1.00", START) };
    let [line] = errors(&order, Some(Fault::FailBefore(401))).try_into().unwrap();
    assert!(line.contains("HTTP 401") && line.contains("tambour resume crm"), "{line}");
}
