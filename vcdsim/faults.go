package vcdsim

import (
	"net/http"
	"path"
	"sync"
)

// A Fault is a rule: what it matches, how often, and what happens instead. Exactly one of the actions applies: a
// Status, Hang, DropBefore, DropAfter, or Message for a task.
type Fault struct {
	// Operation is a glob over operations as Counters names them ("GET /api/query type=vm", "POST /api/vApp/*"), or, with
	// FailTask, over the operationName of tasks ("vdcRecomposeVapp"). "" matches all.
	Operation string
	Skip      int // lets the first matches pass
	Count     int // then applies so often; 0 is for ever

	Status     int               // answer with this status …
	Code       string            // … minor error code …
	Message    string            // … and text; with FailTask the text of the task's error
	Header     map[string]string // Retry-After …
	Hang       bool              // do not answer until the caller gives up
	DropBefore bool              // close the connection, nothing done
	DropAfter  bool              // do the work, then close the connection without an answer
	FailTask   bool              // the matching task ends in error
}

// Faults are the rules of a simulator, asked in order; the first that applies wins.
type Faults struct {
	mu    sync.Mutex
	rules []*Fault
}

// Add adds a rule.
func (f *Faults) Add(rule Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &rule)
}

// Clear removes all rules.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// List returns the rules that are left.
func (f *Faults) List() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Fault, 0, len(f.rules))
	for _, r := range f.rules {
		out = append(out, *r)
	}
	return out
}

// match returns the rule for a request, nil if none applies.
func (f *Faults) match(r *request) *Fault { return f.take(r.op, false) }

// failTask returns the error a rule gives the tasks of an operation.
func (f *Faults) failTask(operationName string) error {
	rule := f.take(operationName, true)
	if rule == nil {
		return nil
	}
	status, code := rule.Status, rule.Code
	if status == 0 {
		status = http.StatusInternalServerError
	}
	if code == "" {
		code = codeInternal
	}
	return refuse(status, code, "%s", rule.Message)
}

func (f *Faults) take(operation string, task bool) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, rule := range f.rules {
		if rule.FailTask != task || !rule.covers(operation) {
			continue
		}
		if rule.Skip > 0 {
			rule.Skip--
			continue
		}
		taken := *rule
		if rule.Count == 1 {
			f.rules = append(f.rules[:i:i], f.rules[i+1:]...)
		} else if rule.Count > 1 {
			rule.Count--
		}
		return &taken
	}
	return nil
}

func (f *Fault) covers(operation string) bool {
	if f.Operation == "" || f.Operation == operation {
		return true
	}
	ok, err := path.Match(f.Operation, operation)
	return err == nil && ok
}

// replaces says whether the rule takes the place of the work.
func (f *Fault) replaces() bool {
	return f != nil && (f.Hang || f.DropBefore || f.Status != 0)
}

// apply does what happens instead of the work.
func (f *Fault) apply(w http.ResponseWriter, hr *http.Request) {
	switch {
	case f.Hang:
		<-hr.Context().Done()
	case f.DropBefore:
		panic(http.ErrAbortHandler)
	default:
		f.write(w, hr)
	}
}

func (f *Fault) write(w http.ResponseWriter, hr *http.Request) {
	for k, v := range f.Header {
		w.Header().Set(k, v)
	}
	refusal := &Refusal{Status: f.Status, Code: f.Code, Message: f.Message}
	r := &request{Request: hr, id: "00000000-0000-0000-0000-000000000000"}
	if r.cloudAPI() {
		writeJSON(w, f.Status, refusal.json(r.id))
		return
	}
	w.Header().Set("Content-Type", "application/vnd.vmware.vcloud.error+xml")
	w.WriteHeader(f.Status)
	_ = refusal.xml(r.id).Write(w) // the caller went away
}

// dropsAfter says whether the connection is dropped when the work is done.
func (f *Fault) dropsAfter() bool { return f != nil && f.DropAfter }
