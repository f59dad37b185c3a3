// SPDX-License-Identifier: Apache-2.0

package servicetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/configpage"
)

// A Page is the reference page of a cloud's annotations.
type Page struct {
	Path string
	// Head and Foot are the texts before and after the table.
	Head, Foot string
	// Command is the command that writes the page. Update means that it is running.
	Command string
	Update  bool
}

// HoldPage compares a page with the table of annotations, and checks that every example in it can be parsed.
func HoldPage[W any](t *testing.T, page Page, all service.Annotations[W]) {
	t.Helper()
	var text strings.Builder
	text.WriteString(page.Head + "\n| Annotation | Value | Example | Meaning |\n|---|---|---|---|\n")
	for _, a := range all.Table {
		fmt.Fprintf(&text, "| `%s` | %s | `%s` | %s |\n", a.Name, a.Value, a.Example, a.Help)
		if a.Parse == nil {
			continue // the core reads it
		}
		if err := a.Parse(new(W), a.Example); err != nil {
			t.Errorf("the example of annotation %s is not understood: %v", a.Name, err)
		}
	}
	configpage.Hold(t, page.Path, text.String()+"\n"+page.Foot, page.Command, page.Update)
}
