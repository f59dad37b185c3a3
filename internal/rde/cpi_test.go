// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
)

const capvcd = "urn:vcloud:type:vmware:capvcdCluster:1.1.0"

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// foreign is an entity of other writers, with numbers, order and spaces that only byte-wise copying preserves.
const foreign = `{ "kind":"CAPVCDCluster", "big": 12345678901234567890,
 "status": { "capvcd": {"uid":"a", "x":1.0e0},  "csi":{"pv":[ 1,2 ]},
  "cpi": {"future":{"a" : 1}, "version":"1.6.1", "name":"cloud-controller-manager",
   "vcdResourceSet":[ {"type":"VApp","id":"v","name":"n"}, {"type":"lb-pool","id":"p1","name":"old","additionalDetails":null} ],
   "virtualIPs":["10.0.0.1"] } }, "spec":null }`

func merge(content string, c Change) (string, error) {
	out, err := Merge(capvcd, json.RawMessage(content), c)
	return string(out), err
}

func TestNoChangeIsANoOp(t *testing.T) {
	g := NewWithT(t)

	out, err := merge(foreign,
		Change{Version: "1.6.1", AddIPs: []string{"10.0.0.1"}, Put: []Resource{{Type: Pool, ID: "p1", Name: "old"}}})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(Equal(foreign), "byte for byte")
}

func TestOnlyOwnedFieldsChange(t *testing.T) {
	g := NewWithT(t)

	out, err := merge(foreign, Change{
		Version: "2.0.0",
		AddIPs:  []string{"10.0.0.2", "10.0.0.2"},
		DropIPs: []string{"10.0.0.1"},
		Put:     []Resource{{Type: VirtualService, ID: "vs1", Name: "web", VirtualIP: "10.0.0.2"}},
		Drop:    []Resource{{Type: Pool, ID: "p1"}},
	})

	g.Expect(err).NotTo(HaveOccurred())
	want := strings.NewReplacer(
		`"version":"1.6.1"`, `"version":"2.0.0"`,
		`[ {"type":"VApp","id":"v","name":"n"}, {"type":"lb-pool","id":"p1","name":"old","additionalDetails":null} ]`,
		`[{"type":"VApp","id":"v","name":"n"},{"type":"virtual-service","id":"vs1","name":"web","additionalDetails":{"virtualIP":"10.0.0.2"}}]`,
		`["10.0.0.1"]`, `["10.0.0.2"]`,
	).Replace(foreign)
	g.Expect(out).To(Equal(want))
}

func TestAnEntityWithoutTheSection(t *testing.T) {
	for name, content := range map[string]string{
		"nothing":         ``,
		"null":            `null`,
		"empty":           `{}`,
		"an empty status": `{"status":{}}`,
		"no status":       `{"status":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			out, err := merge(content,
				Change{
					Version: "2.0.0",
					Events: []Entry{{
						Name:         "CreatedLoadbalancer",
						OccurredAt:   noon,
						ResourceName: "web",
						Detail:       "done",
					}},
				})

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out).To(MatchJSON(`{"status":{"cpi":{"name":"cloud-controller-manager","version":"2.0.0","eventSet":[
				{"name":"CreatedLoadbalancer","occurredAt":"2026-08-01T12:00:00Z","vcdResourceId":"","vcdResourceName":"web","additionalDetails":{"Detailed Event":"done"}}]}}}`))
		})
	}
}

func TestErrorsRotateAndAreCleared(t *testing.T) {
	g := NewWithT(t)
	content := `{}`
	var err error
	for i := range 12 {
		content, err = merge(content,
			Change{
				Version: "2",
				Errors: []Entry{{
					Name:         "CreateLoadbalancerError",
					OccurredAt:   noon,
					ResourceName: fmt.Sprint(i % 2),
					Detail:       fmt.Sprint(i),
				}},
			})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(strings.Count(content, "CreateLoadbalancerError")).To(Equal(10))
	g.Expect(content).NotTo(ContainSubstring(`"Detailed Error":"1"`))

	content, err = merge(content, Change{Version: "2", Healed: []string{"0"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Count(content, "CreateLoadbalancerError")).To(Equal(5))
}

func TestNativeClustersOnlyGetTheirAddresses(t *testing.T) {
	g := NewWithT(t)

	out, err := Merge("urn:vcloud:type:cse:nativeCluster:2.1.0", json.RawMessage(`{"status":{"phase":"x"}}`),
		Change{Version: "2", AddIPs: []string{"10.0.0.1"}})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(Equal(`{"status":{"phase":"x","virtual_IPs":["10.0.0.1"]}}`))
}

func TestOtherTypesAndContentAreRejected(t *testing.T) {
	g := NewWithT(t)
	_, err := Merge("urn:vcloud:type:acme:thing:1.0.0", json.RawMessage(`{}`), Change{})
	g.Expect(err).To(MatchError(ErrOtherType))
	for _, content := range []string{
		`[]`, `{"status":7}`, `{"status":{"cpi":[]}}`,
		`{"status":{"cpi":{"virtualIPs":{}}}}`, `{"status"`,
	} {
		_, err := merge(content, Change{AddIPs: []string{"10.0.0.1"}})
		g.Expect(err).To(HaveOccurred(), content)
	}
}

func FuzzMerge(f *testing.F) {
	f.Add(foreign, "10.0.0.9", "2.0.0")
	f.Add("{", "0", "0")
	f.Add(`{"status":{"cpi":{"vcdResourceSet":[1,"a",null]}}}`, "", "")
	f.Fuzz(func(t *testing.T, content, ip, version string) {
		if !utf8.ValidString(ip) || !utf8.ValidString(version) {
			return // addresses and versions
		}
		change := Change{Version: version, AddIPs: []string{ip}, Put: []Resource{{Type: Pool, ID: "p", Name: "n"}}}
		once, err := merge(content, change)
		if err != nil {
			return
		}
		if !json.Valid([]byte(once)) {
			t.Fatalf("%q became %q", content, once)
		}
		if twice, err := merge(once, change); err != nil || twice != once {
			t.Fatalf("again: %q became %q, %v", once, twice, err)
		}
	})
}

func TestListed(t *testing.T) {
	g := NewWithT(t)

	resources, addresses := Listed(capvcd, json.RawMessage(foreign))
	g.Expect(resources).To(Equal([]Resource{{Type: Pool, ID: "p1", Name: "old"}}), "a vApp is not owned")
	g.Expect(addresses).To(Equal([]string{"10.0.0.1"}))

	for _, other := range []struct{ entityType, content string }{
		{"urn:vcloud:type:cse:nativeCluster:2.1.0", `{"status":{"virtual_IPs":["10.0.0.1"]}}`},
		{capvcd, `{}`},
		{capvcd, `[]`},
		{capvcd, `{"status":{"cpi":{"vcdResourceSet":[1],"virtualIPs":[{}]}}}`},
	} {
		resources, addresses = Listed(other.entityType, json.RawMessage(other.content))
		g.Expect(resources).To(BeEmpty(), other.content)
		g.Expect(addresses).To(BeEmpty(), other.content)
	}
}
