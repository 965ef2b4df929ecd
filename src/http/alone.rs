//! Whoever comes alone is decided on the thread that read it, which waits for the disk there. This sees to it that others
//! are heard meanwhile.
//!
//! One of the runtime's threads sleeps where the kernel tells of sockets, and the other ones sleep until there is work
//! for them. If the one that heard of a request waits for the disk, nobody hears of the next. Waking another one for each
//! decision would take longer than most decisions do. So a thread of its own looks every few milliseconds, and gives the
//! runtime something to do where somebody has been waiting since its last look: whoever is woken for it finds nothing
//! else, and goes to sleep where the sockets are heard.
//!
//! INVARIANT (one worker waits for the disk): this is what keeps the others of use while it waits long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::limits;

/// Who decides on a thread of the runtime.
#[derive(Debug, Default)]
pub(crate) struct Alone {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// Counts an end, whatever it comes to.
struct Ends<'a>(&'a AtomicU64);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

impl Alone {
    /// Does what may wait for the disk.
    pub(super) fn does<T>(&self, work: impl FnOnce() -> T) -> T {
        self.begun.fetch_add(1, Ordering::Release);
        let _ends = Ends(&self.ended);
        work()
    }

    /// Looks after those who wait, for as long as it is wanted.
    pub(crate) fn look_after(&self, runtime: &Handle, wanted: impl Fn() -> bool) {
        let mut before = (0, 0);
        let mut pause = limits::ALONE_LOOK_IDLE_MS;
        while wanted() {
            std::thread::sleep(Duration::from_millis(pause));
            let now = (self.begun.load(Ordering::Acquire), self.ended.load(Ordering::Acquire));
            let waits = now.0 != now.1;
            if waits && now == before {
                // Nothing to do: it is for waking somebody.
                runtime.spawn(async {});
            }
            let is_quiet = !waits && now == before;
            pause = if is_quiet { limits::ALONE_LOOK_IDLE_MS } else { limits::ALONE_LOOK_MS };
            before = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::{Receiver, channel};
    use std::sync::{Arc, Mutex};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers every byte; whoever sends an `h` holds the thread until the test lets go.
    async fn serve(listener: TcpListener, alone: Arc<Alone>, disk: Arc<Mutex<Receiver<()>>>) {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (alone, disk) = (alone.clone(), disk.clone());
            tokio::spawn(async move {
                let mut byte = [0];
                while stream.read_exact(&mut byte).await.is_ok() {
                    if byte == *b"h" {
                        let _ = alone.does(|| disk.lock().unwrap().recv());
                    }
                    let _ = stream.write_all(&byte).await;
                }
            });
        }
    }

    fn ask(stream: &mut TcpStream, byte: u8) {
        stream.write_all(&[byte]).unwrap();
        let mut answer = [0];
        stream.read_exact(&mut answer).expect("nobody answers");
        assert_eq!(answer, [byte]);
    }

    #[test]
    fn others_are_heard_while_somebody_waits_for_the_disk() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (alone, wanted) = (Arc::new(Alone::default()), Arc::new(AtomicBool::new(true)));
        let (let_go, disk) = channel();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(serve(listener, alone.clone(), Arc::new(Mutex::new(disk))));
        let looking = std::thread::spawn({
            let (alone, wanted, handle) = (alone.clone(), wanted.clone(), runtime.handle().clone());
            move || alone.look_after(&handle, || wanted.load(Ordering::Acquire))
        });
        for _ in 0..5 {
            let mut kept = TcpStream::connect(address).unwrap();
            ask(&mut kept, b'a');
            kept.write_all(b"h").unwrap();
            let mut other = TcpStream::connect(address).unwrap();
            // Only a bound for the case that it fails.
            other.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            ask(&mut other, b'b');
            let_go.send(()).unwrap();
            let mut answer = [0];
            kept.read_exact(&mut answer).unwrap();
        }
        wanted.store(false, Ordering::Release);
        looking.join().unwrap();
    }
}
