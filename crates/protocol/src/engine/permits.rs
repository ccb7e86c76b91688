//! Which of a resource's permits are free: on one node, or on a majority.

pub const PERMITS_MAX: u32 = 1024;

/// A bit for each permit, up to the last one: most locks have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermitSet(Vec<u64>);

impl PermitSet {
    /// The permits at whose place in the text is a `1`. `None` if something else than a `0` is at
    /// the place of another, or there are too many places.
    pub fn read(digits: &[u8]) -> Option<Self> {
        let mut set = Self::default();
        for (number, digit) in digits.iter().enumerate() {
            match digit {
                _ if number >= PERMITS_MAX as usize => return None,
                b'1' => set.insert(number),
                b'0' => {}
                _ => return None,
            }
        }
        Some(set)
    }

    fn insert(&mut self, number: usize) {
        self.0.resize(self.0.len().max(number / 64 + 1), 0);
        self.0[number / 64] |= 1 << (number % 64);
    }

    pub fn contains(&self, number: u32) -> bool {
        let word = self
            .0
            .get((number / 64) as usize)
            .copied()
            .unwrap_or_default();
        word & 1 << (number % 64) != 0
    }

    /// The permits that are in this many of the sets, or in more.
    pub fn in_at_least(sets: &[Self], count: usize) -> Self {
        let mut common = Self::default();
        let is_common =
            |number: &u32| sets.iter().filter(|set| set.contains(*number)).count() >= count;
        for number in (0..PERMITS_MAX).filter(is_common) {
            common.insert(number as usize);
        }
        common
    }

    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        (0..PERMITS_MAX).filter(|number| self.contains(*number))
    }

    /// One of them, by a random number.
    pub fn choose(&self, random: u64) -> Option<u32> {
        let index = random.checked_rem(self.numbers().count() as u64)?;
        self.numbers().nth(index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(digits: &str) -> PermitSet {
        PermitSet::read(digits.as_bytes()).unwrap()
    }

    #[test]
    fn a_set_has_the_permits_at_whose_places_the_text_has_a_one() {
        let all = "1".repeat(PERMITS_MAX as usize);
        let set = read("0110");
        assert_eq!(
            (0..5).map(|it| set.contains(it)).collect::<Vec<_>>(),
            [false, true, true, false, false]
        );
        assert!((0..PERMITS_MAX).all(|number| read(&all).contains(number)));
        assert!(!read(&all).contains(PERMITS_MAX));
        assert_eq!(read(""), PermitSet::default());
        for wrong in [
            all.clone() + "1",
            all + "0",
            "12".to_owned(),
            "1 ".to_owned(),
        ] {
            assert_eq!(PermitSet::read(wrong.as_bytes()), None);
        }
    }

    #[test]
    fn what_a_majority_has_free_is_free_and_each_of_these_is_chosen() {
        let sets = ["00111", "01011", "01101", ""].map(read);
        let common = PermitSet::in_at_least(&sets, 2);
        assert_eq!(common, read("01111"));
        assert_eq!(PermitSet::in_at_least(&sets, 3), read("00001"));
        assert_eq!(
            (0..5).map(|it| common.choose(it)).collect::<Vec<_>>(),
            [1, 2, 3, 4, 1].map(Some)
        );
        assert_eq!(PermitSet::in_at_least(&sets, 4).choose(7), None);
    }
}
