------------------------------ MODULE DeltaLog ------------------------------
(***************************************************************************)
(* Writers of a Delta table, copy-on-write: the model of                   *)
(* twinlake.verify.models.DeltaLog once more, for TLC to explore. A state  *)
(* here is a state there, and a step here is a step there, so that both    *)
(* checkers must find the same numbers of states and the same depth.       *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Writers,        \* a set of writers
    Keys,           \* the values of col1
    Values,         \* the values of col2
    MaxOps,         \* how many transactions may start
    PutIfAbsent,    \* whether the store refuses to overwrite a log entry
    Coordination,   \* whether writers hold a table lock while they commit
    Partitioned,    \* whether the table is partitioned by col1
    None

VARIABLES
    writer,         \* what each writer holds; a record with the field "at"
    log,            \* entry of version v at index v
    files,          \* every data file ever written, in the order of writing
    history,        \* by key: committed transactions with their versions
    started,
    locked

vars == <<writer, log, files, history, started, locked>>

Ready  == [at |-> "ready"]
Failed == [at |-> "failed"]

Max(a, b) == IF a > b THEN a ELSE b

Init ==
    /\ writer = [w \in Writers |-> Ready]
    /\ log = <<>>
    /\ files = <<>>
    /\ history = [k \in Keys |-> <<>>]
    /\ started = 0
    /\ locked = FALSE

-----------------------------------------------------------------------------
\* A file's name is a pair of a number and a partition.

Live(name, entries, version) ==
    \E v \in 1..version :
        /\ name \in entries[v].added
        /\ \A later \in v+1..version : name \notin entries[later].removed

Written == {files[i] : i \in 1..Len(files)}

Touches(entry, partition) ==
    \E name \in entry.added \cup entry.removed : name[2] = partition

\* An entry from the version that was read on, that one included, is in my way.
Conflict(me) ==
    \E v \in Max(me.txn.read, 1)..Len(log) :
        Partitioned => Touches(log[v], me.txn.partition)

Merge(rows, txn) ==
    LET others == {row \in rows : row[1] # txn.key}
    IN  CASE txn.kind = "insert" -> rows \cup {<<txn.key, txn.value>>}
          [] txn.kind = "delete" -> others
          [] txn.kind = "update" ->
                IF others = rows THEN rows ELSE others \cup {<<txn.key, txn.value>>}

-----------------------------------------------------------------------------
Begin(w, kind, key, value) ==
    /\ writer' = [writer EXCEPT ![w] =
            [at      |-> "read",
             cached  |-> log,
             version |-> Len(log) + 1,
             txn     |-> [read |-> Len(log), kind |-> kind, key |-> key, value |-> value,
                          partition |-> IF Partitioned THEN key ELSE None]]]
    /\ started' = started + 1
    /\ UNCHANGED <<log, files, history, locked>>

Start(w) ==
    /\ writer[w].at = "ready"
    /\ started < MaxOps
    /\ \E key \in Keys :
        \/ \E value \in Values : Begin(w, "insert", key, value)
        \/ \E value \in Values : Begin(w, "update", key, value)
        \/ Begin(w, "delete", key, None)

Target(w, targets) ==
    /\ writer' = [writer EXCEPT ![w] =
            [at |-> "write", cached |-> @.cached, version |-> @.version, txn |-> @.txn,
             targets |-> targets]]
    /\ UNCHANGED <<log, files, history, started, locked>>

Read(w) ==
    /\ writer[w].at = "read"
    /\ LET me == writer[w]
           live == {file \in Written :
                        /\ file.name[2] = me.txn.partition
                        /\ Live(file.name, me.cached, Len(me.cached))}
           matching == {file \in live : \E row \in file.rows : row[1] = me.txn.key}
           free == {name \in (0..Max(1, Len(files))) \X {me.txn.partition} :
                        \A file \in Written : file.name # name}
       IN  IF me.txn.kind = "insert"
           THEN \E target \in live \cup {[name |-> name, rows |-> {}] : name \in free} :
                    Target(w, {target})
           ELSE IF matching # {}
           THEN Target(w, matching)
           ELSE /\ writer' = [writer EXCEPT ![w] = Ready]
                /\ UNCHANGED <<log, files, history, started, locked>>

\* Every target, merged with the transaction, becomes a new file; numbers go on from the last.
Write(w) ==
    /\ writer[w].at = "write"
    /\ LET me == writer[w]
           rank(one) == Cardinality({other \in me.targets : other.name[1] <= one.name[1]})
           nth(i) == CHOOSE one \in me.targets : rank(one) = i
           new == [i \in 1..Cardinality(me.targets) |->
                        [name |-> <<Len(files) + i, me.txn.partition>>,
                         rows |-> Merge(nth(i).rows, me.txn)]]
           there == {file.name : file \in Written}
       IN  /\ files' = files \o new
           /\ writer' = [writer EXCEPT ![w] =
                [at      |-> IF Coordination THEN "check" ELSE "commit",
                 cached  |-> me.cached,
                 version |-> me.version,
                 txn     |-> me.txn,
                 targets |-> me.targets,
                 added   |-> {new[i].name : i \in 1..Len(new)},
                 removed |-> {one.name : one \in me.targets} \cap there]]
    /\ UNCHANGED <<log, history, started, locked>>

\* The lock is free: is the version?
CheckVersion(w) ==
    /\ writer[w].at = "check"
    /\ ~locked
    /\ LET me == writer[w]
       IN  IF me.version > Len(log)
           THEN /\ writer' = [writer EXCEPT ![w].at = "commit"]
                /\ locked' = TRUE
           ELSE /\ writer' = [writer EXCEPT ![w] =
                        IF Conflict(me) THEN Ready ELSE [me EXCEPT !.version = Len(log) + 1]]
                /\ UNCHANGED locked
    /\ UNCHANGED <<log, files, history, started>>

Commit(w) ==
    /\ writer[w].at = "commit"
    /\ locked' = (locked /\ ~Coordination)
    /\ LET me == writer[w]
           entry == [added |-> me.added, removed |-> me.removed]
       IN  IF PutIfAbsent /\ me.version <= Len(log)
           THEN /\ writer' = [writer EXCEPT ![w] =
                        IF Conflict(me) THEN Ready ELSE [me EXCEPT !.version = Len(log) + 1]]
                /\ UNCHANGED <<log, history>>
           ELSE /\ log' = IF me.version <= Len(log)
                          THEN [log EXCEPT ![me.version] = entry]
                          ELSE Append(log, entry)
                /\ history' = [history EXCEPT ![me.txn.key] = Append(@, <<me.version, me.txn>>)]
                /\ writer' = [writer EXCEPT ![w] = Ready]
    /\ UNCHANGED <<files, started>>

Fail(w) ==
    /\ writer[w].at = "commit"
    /\ writer' = [writer EXCEPT ![w] = Failed]
    /\ locked' = (locked /\ ~Coordination)
    /\ UNCHANGED <<log, files, history, started>>

Next ==
    \E w \in Writers :
        \/ Start(w)
        \/ Read(w)
        \/ Write(w)
        \/ CheckVersion(w)
        \/ Commit(w)
        \/ Fail(w)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
ValidDeltaLog == \A v \in 1..Len(log) : log[v].added \cap log[v].removed = {}

RECURSIVE Replay(_, _, _)
Replay(done, version, values) ==
    IF done = <<>> THEN values
    ELSE LET at == Head(done)[1]
             txn == Head(done)[2]
             after == CASE txn.kind = "insert" -> values \cup {txn.value}
                        [] txn.kind = "delete" -> {}
                        [] txn.kind = "update" -> IF values = {} THEN {} ELSE {txn.value}
         IN  Replay(Tail(done), version, IF at > version THEN values ELSE after)

Reads(key, version) ==
    {row[2] : row \in {row \in UNION {file.rows : file \in
        {file \in Written : Live(file.name, log, version)}} : row[1] = key}}

ConsistentRead ==
    \A key \in Keys : \A version \in 1..Len(log) :
        Reads(key, version) = Replay(history[key], version, {})
=============================================================================
