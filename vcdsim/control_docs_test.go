// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/control"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/faults"
)

var update = flag.Bool("update", false, "write docs/reference/vcdsim-control-api.md")

const controlPage = `# vcdsim control API

Tests and users control a running [vcdsim](../get-started/vcdsim.md) with this API, which VCD does not have. All paths begin with ` + "`/_sim`" + `.
Requests and responses are JSON. An error is ` + "`{\"error\": \"…\"}`" + ` with status 400, 401, 403 or 404. This page is generated from the table
of routes: ` + "`go test ./vcdsim -run ControlPage -update`" + `.

| Request | Effect or response | Body |
|---|---|---|
%s
## Fault rules

A rule has a condition, a frequency and an effect. The fields are those of ` + "`vcdsim.Fault`" + `. Durations have the form
` + "`1m30s`" + `. At least one field must set an effect.

| Field | Type |
|---|---|
%s`

func TestControlPageIsUpToDate(t *testing.T) {
	g := NewWithT(t)
	var calls, fields strings.Builder
	for _, c := range (&control.Control{}).Routes() {
		body := ""
		if c.Body != "" {
			body = "`" + c.Body + "`"
		}
		fmt.Fprintf(&calls, "| `%s %s%s` | %s | %s |\n", c.Method, control.Path, c.Path, c.Does, body)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[faults.FaultJSON]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fmt.Fprintf(&fields, "| `%s` | %s |\n", name, strings.TrimPrefix(f.Type.String(), "faults."))
		}
	}
	page := fmt.Sprintf(controlPage, calls.String(), fields.String())
	file := filepath.Join("..", "docs", "reference", "vcdsim-control-api.md")
	if *update {
		g.Expect(os.WriteFile(file, []byte(page), 0o600)).To(Succeed())
	}
	written, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(written)).To(Equal(page), "run: go test ./vcdsim -run ControlPage -update")
}
