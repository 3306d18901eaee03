//! Boosted trees over the facts of a block: how likely its words are content. Grown by `train/grow.py`, kept as data.

use std::sync::LazyLock;

use super::facts;

/// A line a tree, in the order of a walk that goes left first: `name<threshold` or the value of a leaf.
const TREES: &str = include_str!("trees.txt");
/// Marks a leaf.
const LEAF: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The fact that decides, or [`LEAF`].
    fact: u16,
    /// Where the right child is; the left one follows.
    right: u16,
    /// Goes left up to this; the value of a leaf.
    bound: f32,
}

/// All trees.
#[derive(Debug)]
pub struct Trees(Vec<Vec<Node>>);

/// The trees of this release.
pub fn trees() -> &'static Trees {
    static ALL: LazyLock<Trees> = LazyLock::new(|| Trees::read(TREES, &facts::names()));
    &ALL
}

impl Trees {
    /// Reads the file. A tree that cannot be read is left out; a test reads them all.
    fn read(text: &str, names: &[String]) -> Self {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(lines.filter_map(|line| tree(line, names)).collect())
    }

    /// Whether there are none, as while new facts are tried.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The probability that a block with these facts is content.
    pub fn probability(&self, row: &[f32]) -> f32 {
        let mut sum = 0.0;
        for tree in &self.0 {
            let mut at = 0;
            loop {
                let node = tree[at];
                if node.fact == LEAF {
                    sum += node.bound;
                    break;
                }
                at = if row[node.fact as usize] <= node.bound { at + 1 } else { node.right as usize };
            }
        }
        1.0 / (1.0 + (-sum).exp())
    }
}

/// One line as a tree; `None` if it is none.
fn tree(line: &str, names: &[String]) -> Option<Vec<Node>> {
    let mut nodes: Vec<Node> = Vec::new();
    // Nodes whose right child is still to come.
    let mut open: Vec<usize> = Vec::new();
    let mut is_whole = false;
    for word in line.split_ascii_whitespace() {
        if is_whole {
            return None;
        }
        let here = nodes.len();
        match word.split_once('<') {
            Some((name, bound)) => {
                let fact = names.iter().position(|n| n == name)?;
                nodes.push(Node { fact: u16::try_from(fact).ok()?, right: 0, bound: bound.parse().ok()? });
                open.push(here);
            }
            None => {
                nodes.push(Node { fact: LEAF, right: 0, bound: word.parse().ok()? });
                match open.pop() {
                    Some(up) => nodes[up].right = u16::try_from(here + 1).ok()?,
                    None => is_whole = true,
                }
            }
        }
    }
    (is_whole && open.is_empty()).then_some(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tree_of_the_file_is_read() {
        let lines = TREES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        assert_eq!(trees().0.len(), lines);
        assert!(lines > 10);
    }

    #[test]
    fn a_tree_is_walked_to_its_leaf() {
        let names = vec!["a".to_owned(), "b".to_owned()];
        let trees = Trees::read("a<1 b<2 -1 0.5 b<3 0 2\n", &names);
        let sum = |row: [f32; 2]| {
            let p = trees.probability(&row);
            (p / (1.0 - p)).ln()
        };
        for (row, value) in [([0.0, 0.0], -1.0), ([1.0, 9.0], 0.5), ([2.0, 3.0], 0.0), ([2.0, 4.0], 2.0)] {
            assert!((sum(row) - value).abs() < 1e-4, "{row:?}");
        }
        assert!(tree("a<1 2", &names).is_none() && tree("c<1 2 3", &names).is_none() && tree("1 2", &names).is_none());
    }
}
