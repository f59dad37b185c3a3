// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"encoding/xml"
	"testing"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// FuzzParseXML parses arbitrary documents. Writing and parsing a document again must not change it.
func FuzzParseXML(f *testing.F) {
	f.Add([]byte(vmDocument))
	f.Add([]byte(`<a x="&lt;&quot;&#10;"><b:c xmlns:b="d">t&amp;</b:c></a>`))
	f.Add([]byte(`<a><b></a></b>`))
	f.Fuzz(func(t *testing.T, document []byte) {
		root, err := wire.ParseXML(document)
		if err != nil {
			return
		}
		once := root.Document()
		again, err := wire.ParseXML(once)
		if err != nil {
			t.Fatalf("%q cannot be parsed again: %v", once, err)
		}
		if twice := again.Document(); string(once) != string(twice) {
			t.Fatalf("%q became %q", once, twice)
		}
	})
}

// FuzzReconfigured changes arbitrary documents: it must not panic, and the result must be an error or XML.
func FuzzReconfigured(f *testing.F) {
	f.Add([]byte(vmDocument), "guestinfo.a", "b", int64(40960))
	f.Fuzz(func(t *testing.T, document []byte, key, value string, disk int64) {
		body, err := reconfigured(document, VMChange{ExtraConfig: map[string]string{key: value}, DiskMiB: disk})
		if err != nil {
			return
		}
		if _, err := wire.ParseXML(body); err != nil {
			t.Fatalf("%q is not XML", body)
		}
	})
}

// FuzzParseMarker parses descriptions by users. A marker that is found must survive a round trip.
func FuzzParseMarker(f *testing.F) {
	f.Add("x cluster-api-provider-vcd cluster=a machine=b y")
	f.Fuzz(func(t *testing.T, description string) {
		m, ok := ParseMarker(description)
		if again, _ := ParseMarker(m.String()); ok && again != m {
			t.Fatalf("%+v became %+v", m, again)
		}
	})
}

// FuzzVM parses arbitrary VMs.
func FuzzVM(f *testing.F) {
	f.Add([]byte(vmDocument))
	f.Fuzz(func(_ *testing.T, document []byte) {
		var vm types.Vm
		if xml.Unmarshal(document, &vm) == nil {
			vmFrom(&vm)
		}
		var vApp types.VApp
		if xml.Unmarshal(document, &vApp) == nil {
			vAppFrom(&vApp)
		}
	})
}
