// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cells"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/clock"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/dump"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/faults"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

func (ctl *Control) getDump(*api.Request) (*api.Response, error) {
	encoded, err := dump.Encode(ctl.Cloud)
	if err != nil {
		return nil, err
	}
	return &api.Response{Status: http.StatusOK, Raw: encoded, ContentType: "application/json"}, nil
}

func (ctl *Control) restoreDump(r *api.Request) (*api.Response, error) {
	if err := dump.Restore(ctl.Cloud, ctl.Guests, bytes.NewReader(r.Content)); err != nil {
		return nil, err
	}
	return api.NoContent(), nil
}

func (ctl *Control) listFaults(*api.Request) (*api.Response, error) {
	return api.JSON(ctl.Faults.List()), nil
}

func (ctl *Control) addFault(r *api.Request) (*api.Response, error) {
	var rule faults.Fault
	if err := decode(r, &rule); err != nil {
		return nil, err
	}
	if err := rule.Validate(); err != nil {
		return nil, err
	}
	rule.ID = ctl.Faults.Add(rule)
	return &api.Response{Status: http.StatusCreated, JSON: rule}, nil
}

func (ctl *Control) clearFaults(*api.Request) (*api.Response, error) {
	ctl.Faults.Clear()
	return api.NoContent(), nil
}

func (ctl *Control) removeFault(r *api.Request) (*api.Response, error) {
	id, err := strconv.Atoi(r.Vars["id"])
	if err != nil || !ctl.Faults.Remove(id) {
		return nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "fault rule %s does not exist", r.Vars["id"])
	}
	return api.NoContent(), nil
}

func (ctl *Control) resetCounters(*api.Request) (*api.Response, error) {
	ctl.Journal.Reset()
	return api.NoContent(), nil
}

func (ctl *Control) listCells(*api.Request) (*api.Response, error) {
	return api.JSON(cellStatuses(ctl.Cells)), nil
}

func cellStatuses(all []*cells.Cell) []cells.CellStatus {
	out := make([]cells.CellStatus, 0, len(all))
	for _, c := range all {
		out = append(out, c.Status())
	}
	return out
}

// A cellCommand is a change of a cell through the control API.
type cellCommand struct {
	Do           string        `json:"do"`
	Down         string        `json:"down"`
	Version      cells.Version `json:"version"`
	NewAuthority bool          `json:"newAuthority"`
}

func (ctl *Control) commandCell(r *api.Request) (*api.Response, error) {
	n, err := strconv.Atoi(r.Vars["number"])
	if err != nil || n < 1 || n > len(ctl.Cells) {
		return nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "cell %s does not exist", r.Vars["number"])
	}
	var in cellCommand
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	c := ctl.Cells[n-1]
	if err := in.run(c); err != nil {
		return nil, err
	}
	return api.JSON(c.Status()), nil
}

func (in cellCommand) run(c *cells.Cell) error {
	var down time.Duration
	if in.Down != "" {
		d, err := time.ParseDuration(in.Down)
		if err != nil {
			return store.BadRequest("down must be a duration such as 30s")
		}
		down = d
	}
	switch in.Do {
	case "upgrade":
		return c.Upgrade(in.Version)
	case "renewCertificate":
		return c.RenewCertificate(in.NewAuthority)
	}
	act, ok := map[string]func(){
		"stop":     c.Stop,
		"crash":    c.Crash,
		"start":    c.Start,
		"restart":  func() { c.Restart(down) },
		"maintain": func() { c.Maintain(true) },
		"serve":    func() { c.Maintain(false) },
	}[in.Do]
	if !ok {
		return store.BadRequest("unknown action %q for a cell", in.Do)
	}
	act()
	return nil
}

// A clockJSON is the state of the clock in the control API.
type clockJSON struct {
	Now time.Time `json:"now"`
	// Rate is the number of simulated seconds per second; 0 means that the clock stands still.
	Rate float64 `json:"rate"`
}

func clockStatus(s *cloud.Cloud) clockJSON {
	out := clockJSON{Now: s.Clock.Now(), Rate: 1}
	if c, ok := s.Clock.(*clock.SimClock); ok {
		out.Rate = c.Rate()
	}
	return out
}

func (ctl *Control) getClock(*api.Request) (*api.Response, error) {
	return api.JSON(clockStatus(ctl.Cloud)), nil
}

// setClock advances the clock and changes its rate.
func (ctl *Control) setClock(r *api.Request) (*api.Response, error) {
	var in struct {
		Advance string   `json:"advance"`
		Rate    *float64 `json:"rate"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	c, ok := ctl.Cloud.Clock.(*clock.SimClock)
	if !ok {
		return nil, store.BadRequest("this clock cannot be changed")
	}
	var d time.Duration
	if in.Advance != "" {
		var err error
		if d, err = time.ParseDuration(in.Advance); err != nil || d < 0 {
			return nil, store.BadRequest("advance must be a duration such as 90s")
		}
	}
	if in.Rate != nil {
		if *in.Rate < 0 || *in.Rate > maxRate {
			return nil, store.BadRequest("rate must be from 0 to %d", maxRate)
		}
		c.SetRate(*in.Rate)
	}
	c.Advance(d)
	return api.JSON(clockStatus(ctl.Cloud)), nil
}

// maxRate is the maximum rate of the clock: more than a day per second.
const maxRate = 100_000
