// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/json"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A stateJSON is the state in responses of the control API.
type stateJSON struct {
	Model      store.Model
	VApps      []store.VApp
	VMs        []store.VM
	Disks      []store.Disk
	Tasks      []taskJSON
	Sessions   int
	Metadata   map[string]map[string]store.Metadata
	Documents  []store.Document
	Access     []store.Access
	APIClients []store.APIClient
}

type taskJSON struct {
	ID, Operation, Owner string
	Status               store.TaskStatus
	Started, Ended       time.Time
	Error                string `json:",omitempty"`
}

func (ctl *Control) getState(*api.Request) (*api.Response, error) {
	return api.JSON(ctl.withoutSecrets(ctl.Cloud.State())), nil
}

// withoutSecrets returns the state without credentials: passwords, tokens and private keys.
func (ctl *Control) withoutSecrets(s store.State) stateJSON {
	out := stateJSON{
		Model:      s.Model,
		VApps:      s.VApps,
		VMs:        s.VMs,
		Disks:      s.Disks,
		Sessions:   len(s.Sessions),
		Metadata:   s.Metadata,
		Documents:  s.Documents,
		Access:     s.Access,
		APIClients: s.APIClients,
	}
	for o := range out.Model.Orgs {
		for u := range out.Model.Orgs[o].Users {
			out.Model.Orgs[o].Users[u].Password = ""
			out.Model.Orgs[o].Users[u].APITokens = nil
		}
	}
	for i := range out.APIClients {
		out.APIClients[i].Token = ""
		out.APIClients[i].UserCode = ""
		out.APIClients[i].DeviceCode = ""
	}
	hidden := map[string][]string{}
	for _, c := range ctl.Collections {
		hidden[c.Path] = c.Hidden
	}
	for i := range out.Documents {
		out.Documents[i].Body = without(out.Documents[i].Body, hidden[out.Documents[i].Path])
	}
	for _, t := range s.Tasks {
		j := taskJSON{
			ID:        t.ID,
			Operation: t.OperationName,
			Owner:     t.Owner.Name,
			Status:    t.Status,
			Started:   t.Started,
			Ended:     t.Ended,
		}
		if t.Error != nil {
			j.Error = t.Error.Message
		}
		out.Tasks = append(out.Tasks, j)
	}
	return out
}

// without returns an object without some fields.
func without(body json.RawMessage, fields []string) json.RawMessage {
	if len(fields) == 0 {
		return body
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &object) != nil {
		return nil
	}
	for _, f := range fields {
		delete(object, f)
	}
	out, _ := json.Marshal(object)
	return out
}
