//! The text that Prometheus reads, with its series in one order: the library keeps them in a hash map, and so writes them
//! in another order after each start, and whenever there is one more.

/// The same text, the series of each metric sorted by their labels.
pub(super) fn in_order(text: &str) -> String {
    let mut ordered = String::with_capacity(text.len());
    let mut series = Vec::new();
    for line in text.lines() {
        if line.starts_with('#') {
            settle(&mut series, &mut ordered);
            write(line, &mut ordered);
        } else {
            series.push(line);
        }
    }
    settle(&mut series, &mut ordered);
    ordered
}

fn settle(series: &mut Vec<&str>, ordered: &mut String) {
    // Stable: what a histogram has of one series, its buckets from the smallest on, stays as it is.
    series.sort_by_cached_key(|line| labels(line));
    series.drain(..).for_each(|line| write(line, ordered));
}

fn write(line: &str, ordered: &mut String) {
    ordered.push_str(line);
    ordered.push('\n');
}

/// What tells a series from others: its labels, but not the bound of a bucket.
fn labels(line: &str) -> Vec<&str> {
    let between = line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}'));
    let all = between.map_or("", |(labels, _)| labels).split(',');
    all.filter(|label| !label.starts_with("le=")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_stand_in_one_order_and_buckets_in_theirs() {
        const TEXT: &str = "\
# TYPE a counter
a_total{code=\"Y\",status=\"9\"} 2
a_total{code=\"X\",status=\"10\"} 1
# TYPE b histogram
b_sum{step=\"read\"} 0.5
b_count{step=\"read\"} 1
b_bucket{le=\"2.5\",step=\"read\"} 0
b_bucket{le=\"10.0\",step=\"read\"} 1
b_bucket{le=\"+Inf\",step=\"read\"} 1
b_sum{step=\"judge\"} 0.5
b_bucket{le=\"+Inf\",step=\"judge\"} 1
# TYPE c gauge
c 1
# EOF
";
        const ORDERED: &str = "\
# TYPE a counter
a_total{code=\"X\",status=\"10\"} 1
a_total{code=\"Y\",status=\"9\"} 2
# TYPE b histogram
b_sum{step=\"judge\"} 0.5
b_bucket{le=\"+Inf\",step=\"judge\"} 1
b_sum{step=\"read\"} 0.5
b_count{step=\"read\"} 1
b_bucket{le=\"2.5\",step=\"read\"} 0
b_bucket{le=\"10.0\",step=\"read\"} 1
b_bucket{le=\"+Inf\",step=\"read\"} 1
# TYPE c gauge
c 1
# EOF
";
        assert_eq!(in_order(TEXT), ORDERED);
        assert_eq!(in_order(ORDERED), ORDERED);
    }
}
