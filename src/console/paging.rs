//! The way through a list that is longer than a page, and back, with the same filters.
//!
//! The API goes one way only, from a cursor to the next. The way back is what the address remembers: the cursors of
//! the pages before, so that it works without a script, in a new tab and after a restart.

use super::form::{Fields, encoded};
use crate::limits;

/// Between cursors that an address remembers; none has it.
const BETWEEN: &str = "~";

/// The ways from a page of a list to others of it.
#[derive(Debug)]
pub(super) struct Paging {
    /// Which page it is, from 1 on.
    pub(super) number: usize,
    pub(super) first: String,
    /// The page before it: nothing on the first, or where the address no longer remembers it.
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl Paging {
    /// For the page at this cursor, whose answer names the next one. `filters` is a query.
    pub(super) fn of(base: &str, filters: &str, fields: &Fields, next: &str) -> Self {
        let cursor = fields.text("cursor");
        let first = if filters.is_empty() { base.to_owned() } else { format!("{base}?{filters}") };
        let number: usize = match cursor.is_empty() {
            true => 1,
            false => fields.text("page").parse().unwrap_or(2).clamp(2, usize::MAX / 2),
        };
        let trail: Vec<&str> = fields.text("back").split(BETWEEN).filter(|part| !part.is_empty()).collect();
        let at = |number: usize, cursor: &str, trail: &[&str]| {
            let mut place = if filters.is_empty() { format!("{base}?") } else { format!("{first}&") };
            place.push_str(&format!("cursor={}&page={number}", encoded(cursor)));
            if !trail.is_empty() {
                place.push_str(&format!("&back={}", encoded(&trail.join(BETWEEN))));
            }
            place
        };
        let before = match (number, trail.split_last()) {
            (1, _) => None,
            (2, _) => Some(first.clone()),
            (_, Some((last, rest))) => Some(at(number - 1, last, rest)),
            (_, None) => None,
        };
        let after = (!next.is_empty()).then(|| {
            let mut trail = trail.clone();
            if !cursor.is_empty() {
                trail.push(cursor);
            }
            at(number + 1, next, remembered(&trail))
        });
        Self { number, first, before, after }
    }

    pub(super) fn is_first(&self) -> bool {
        self.number == 1
    }

    /// Is there any other page?
    pub(super) fn is_needed(&self) -> bool {
        !self.is_first() || self.after.is_some()
    }
}

/// The end of the way, as far as an address should hold it.
fn remembered<'t>(trail: &'t [&'t str]) -> &'t [&'t str] {
    let mut bytes = 0;
    let fits = |cursor: &&&str| {
        bytes += cursor.len() + BETWEEN.len();
        bytes <= limits::CONSOLE_TRAIL_BYTES
    };
    let kept = trail.iter().rev().take_while(fits).count();
    trail.get(trail.len() - kept..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paging(place: &str, next: &str) -> Paging {
        let query = place.split_once('?').map_or("", |(_, query)| query);
        let fields = Fields::read(query).unwrap();
        Paging::of("/list", &fields.query_of(&["state"]), &fields, next)
    }

    #[test]
    fn one_goes_through_a_list_and_the_same_way_back() {
        // Some lists have cursors of more than a word.
        for (start, kind) in
            [("/list", "c"), ("/list?state=a%20b", "c"), ("/list", "1771443480000000000.hs_2026.a:b-")]
        {
            let mut places = vec![start.to_owned()];
            for n in 0..5 {
                let here = paging(places.last().unwrap(), &format!("{kind}{n}"));
                assert_eq!((here.number, here.first.as_str()), (n + 1, start));
                places.push(here.after.unwrap());
            }
            assert!(paging(&places[5], "").after.is_none(), "the last");
            for n in (1..=5).rev() {
                assert_eq!(paging(&places[n], "c9").before.as_ref(), Some(&places[n - 1]), "{n}");
            }
            assert!(paging(start, "c0").before.is_none());
        }
        assert!(!paging("/list", "").is_needed() && paging("/list", "c1").is_needed());
    }

    #[test]
    fn an_address_remembers_only_so_much_and_then_leads_to_the_first_page() {
        let mut place = "/list".to_owned();
        for n in 0..1_000 {
            place = paging(&place, &format!("c{n:x}")).after.unwrap();
        }
        assert!(place.len() < limits::CONSOLE_TRAIL_BYTES + 100, "{}", place.len());
        let mut steps = 0;
        while let Some(before) = paging(&place, "").before {
            place = before;
            steps += 1;
            let here = Fields::read(place.split_once('?').unwrap().1).unwrap();
            assert_eq!(here.text("cursor"), format!("c{:x}", 999 - steps), "not to a wrong page");
        }
        assert!(steps > 300 && !paging(&place, "").is_first(), "{steps}");
    }

    #[test]
    fn an_address_that_somebody_made_up_is_still_some_page() {
        assert_eq!(paging("/list?cursor=c1&page=x", "").number, 2);
        assert_eq!(paging("/list?cursor=c1&page=0", "").number, 2);
        assert_eq!(paging("/list?page=7&back=c1~c2", "").number, 1);
        let odd = paging("/list?cursor=c1&page=9&back=%22%3E~~%26x%3D1", "c2");
        assert_eq!(odd.before.as_deref(), Some("/list?cursor=%26x%3D1&page=8&back=%22%3E"));
    }
}
