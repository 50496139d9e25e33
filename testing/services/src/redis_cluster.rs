//! A Redis Cluster of three nodes.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::redis::{RedisProgram, RedisServer};

const SLOTS: usize = 16_384;

/// Three masters without replicas that share the slots evenly.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts the nodes, joins them, and waits until each of them says that the cluster is well.
    ///
    /// # Errors
    /// If a node does not start or they do not find each other within twenty seconds.
    pub fn start(program: RedisProgram) -> Result<Self> {
        let settings = [
            "--save",
            "",
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            "2000",
        ];
        let nodes = (0..3)
            .map(|_| RedisServer::start_with(program, &settings))
            .collect::<Result<Vec<_>>>()?;
        let share = SLOTS.div_ceil(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let slots: Vec<String> = (index * share..((index + 1) * share).min(SLOTS))
                .map(|slot| slot.to_string())
                .collect();
            // ADDSLOTSRANGE came with 7.0; this works with 6.2 too.
            let mut words = vec!["CLUSTER", "ADDSLOTS"];
            words.extend(slots.iter().map(String::as_str));
            node.command(&words)?;
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
        }
        for node in &nodes[1..] {
            node.command(&["CLUSTER", "MEET", "127.0.0.1", &nodes[0].port().to_string()])?;
        }
        let cluster = Self { nodes };
        cluster.wait_until_well()?;
        Ok(cluster)
    }

    fn wait_until_well(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            let mut well = true;
            for node in &self.nodes {
                let info = node.command(&["CLUSTER", "INFO"])?;
                well &= info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3");
            }
            if well {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("the nodes of the cluster did not find each other within twenty seconds")
    }

    /// The nodes.
    #[must_use]
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The addresses of all nodes.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    /// Moves the slot of `key` to another node, keys and all, as `redis-cli --cluster reshard` would.
    ///
    /// # Errors
    /// If a node refuses one of the steps.
    pub fn move_slot_of(&self, key: &str) -> Result<()> {
        let slot = self.nodes[0].command(&["CLUSTER", "KEYSLOT", key])?;
        let slot = slot.trim_start_matches(':').trim().to_owned();
        let ids = self
            .nodes
            .iter()
            .map(|node| {
                let id = node.command(&["CLUSTER", "MYID"])?;
                Ok(id.lines().nth(1).unwrap_or_default().trim().to_owned())
            })
            .collect::<Result<Vec<_>>>()?;
        let number: usize = slot.parse()?;
        let owner = self.owner_of(number, &ids)?;
        let (from, to) = (&self.nodes[owner], (owner + 1) % self.nodes.len());
        let target = &self.nodes[to];
        target.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &ids[owner]])?;
        from.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &ids[to]])?;
        loop {
            let keys = from.command(&["CLUSTER", "GETKEYSINSLOT", &slot, "16"])?;
            let keys: Vec<&str> = keys
                .lines()
                .skip(1)
                .filter(|line| !line.starts_with('$'))
                .collect();
            if keys.is_empty() {
                break;
            }
            let port = target.port().to_string();
            let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            words.extend(keys);
            from.command(&words)?;
        }
        // The new owner first: it must know before anybody is sent there.
        for node in [target, from].into_iter().chain(&self.nodes) {
            node.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &ids[to]])?;
        }
        Ok(())
    }

    /// The index of the node that serves a slot, by what the first node knows.
    fn owner_of(&self, slot: usize, ids: &[String]) -> Result<usize> {
        let nodes = self.nodes[0].command(&["CLUSTER", "NODES"])?;
        let serves = |range: &str| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            first.parse::<usize>().is_ok_and(|first| first <= slot)
                && last.parse::<usize>().is_ok_and(|last| slot <= last)
        };
        let owner = nodes.lines().find_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            words
                .iter()
                .skip(8)
                .any(|range| serves(range))
                .then(|| words[0])
        });
        match owner.and_then(|owner| ids.iter().position(|id| id == owner)) {
            Some(index) => Ok(index),
            None => bail!("no node serves slot {slot}"),
        }
    }
}
