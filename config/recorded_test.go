// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	. "github.com/onsi/gomega"
)

const (
	someUUID  = "0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"
	otherUUID = "1dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"
)

// recordedOf returns a patch that sets the recorded state of a cluster.
func recordedOf(fields string) string { return `{spec: {recordedState: {` + fields + `}}}` }

func TestClusterRecordsAreValidated(t *testing.T) {
	at := func(field string) []string { return []string{"spec.recordedState." + field} }
	checkCreations(t, "VCDCluster", clusterYAML, []creation{
		{
			"records that a move includes",
			recordedOf(`ovdcID: "urn:vcloud:vdc:` + someUUID + `", ovdcNetworkID: "urn:vcloud:network:` + someUUID + `",
endpointGatewayID: "urn:vcloud:gateway:` + someUUID + `", endpointAddresses: [10.0.0.1, "fd00::1"], nodeProxy: true,
rdeID: "urn:vcloud:entity:vmware:capvcdCluster:` + someUUID + `", vAppCount: 2, vAppIDs: ["urn:vcloud:vapp:` + someUUID + `"],
zones: {a: {ovdcID: "urn:vcloud:vdc:` + someUUID + `", vAppCount: 1}}, lastGoneAt: "2026-08-01T12:00:00Z",
inheritedLoadBalancer: {oneArm: {startIP: 192.168.8.2, endIP: 192.168.8.9}}, detachedDisks: {` + someUUID + `: data}`),
			nil,
		},
		{"no VDC name", recordedOf(`ovdcID: acme-vdc`), at("ovdcID")},
		{"no URN of another kind", recordedOf(`ovdcNetworkID: "urn:vcloud:vdc:` + someUUID + `"`), at("ovdcNetworkID")},
		{"no vApp name", recordedOf(`vAppIDs: [mine]`), at("vAppIDs[0]")},
		{"no zone without its VDC", recordedOf(`zones: {a: {vAppCount: 1}}`), at("zones.a.ovdcID")},
		{"no invalid address", recordedOf(`endpointAddresses: [api]`), at("endpointAddresses[0]")},
		{"no disabled switch", recordedOf(`nodeProxy: false`), at("nodeProxy")},
		{"no disk name", recordedOf(`detachedDisks: {data: data}`), at("detachedDisks")},
	})
}

func TestAClusterTemplateHasNoRecords(t *testing.T) {
	checkCreations(t, "VCDClusterTemplate", clusterTemplateYAML, []creation{{
		"a missing record",
		`{spec: {template: {spec: {recordedState: {vAppCount: 1}}}}}`,
		[]string{"spec.template.spec.recordedState"},
	}})
}

func TestClusterRecordsCannotBeRemoved(t *testing.T) {
	const (
		lost    = "spec.recordedState"
		gateway = "urn:vcloud:gateway:"
		vdc     = "urn:vcloud:vdc:"
		vApp    = "urn:vcloud:vapp:"
	)
	someVDC := recordedOf(`ovdcID: "` + vdc + someUUID + `", vAppCount: 2`)
	inZone := recordedOf(`vAppCount: 1, zones: {a: {ovdcID: "` + vdc + someUUID + `", vAppCount: 2}}`)
	tests := []struct {
		name, before, change string
		fields               []string
	}{
		{name: "another VDC", before: someVDC, change: recordedOf(`ovdcID: "` + vdc + otherUUID + `"`), fields: []string{"spec.recordedState.ovdcID"}},
		{name: "the VDC is looked up again", before: someVDC, change: recordedOf(`ovdcID: `)},
		{name: "all records are removed", before: someVDC, change: `{spec: {recordedState: }}`, fields: []string{lost, lost}},
		{name: "the number of vApps is removed", before: someVDC, change: recordedOf(`vAppCount: `), fields: []string{lost}},
		{name: "the number of vApps decreases", before: someVDC, change: recordedOf(`vAppCount: 1`), fields: []string{"spec.recordedState.vAppCount"}},
		{name: "the number of vApps grows", before: someVDC, change: recordedOf(`vAppCount: 3`)},
		{name: "another VDC of a zone", before: inZone, change: recordedOf(`zones: {a: {ovdcID: "` + vdc + otherUUID + `"}}`), fields: []string{"spec.recordedState.zones[a].ovdcID"}},
		{name: "fewer vApps in a zone", before: inZone, change: recordedOf(`zones: {a: {vAppCount: 1}}`), fields: []string{"spec.recordedState.zones[a].vAppCount"}},
		{name: "a zone is used with another VDC", before: inZone, change: recordedOf(`zones: {a: }`)},
		{name: "a further zone", before: inZone, change: recordedOf(`zones: {b: {ovdcID: "` + vdc + otherUUID + `"}}`)},
		{name: "a vApp is removed", before: recordedOf(`vAppIDs: ["` + vApp + someUUID + `"], vAppCount: 1`), change: recordedOf(`vAppIDs: `), fields: []string{lost}},
		{
			name:   "a gateway is removed",
			before: recordedOf(`edgeGatewayIDs: ["` + gateway + someUUID + `", "` + gateway + otherUUID + `"]`),
			change: recordedOf(`edgeGatewayIDs: ["` + gateway + someUUID + `"]`),
			fields: []string{lost},
		},
		{name: "the record of kept load balancers is removed", before: recordedOf(`loadBalancersAllowed: true, vAppCount: 1`), change: recordedOf(`loadBalancersAllowed: `), fields: []string{lost}},
		{name: "another entity is created", before: recordedOf(`rdeID: "urn:vcloud:entity:vmware:capvcdCluster:` + someUUID + `", vAppCount: 1`), change: recordedOf(`rdeID: `)},
	}
	c := loadCRDs(t)["VCDCluster"]
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			errs := c.admit(t, parse(t, clusterYAML, identified, tt.before, tt.change), parse(t, clusterYAML, identified, tt.before))

			g.Expect(fieldsOf(errs)).To(Equal(tt.fields), "%v", errs)
		})
	}
}

func TestRecordsOfACopiedClusterAreReplaced(t *testing.T) {
	g := NewWithT(t)
	c := loadCRDs(t)["VCDCluster"]
	before := recordedOf(`ovdcID: "urn:vcloud:vdc:` + someUUID + `"`)
	change := recordedOf(`ovdcID: "urn:vcloud:vdc:` + otherUUID + `"`)

	errs := c.admit(t, parse(t, clusterYAML, before, identified, change), parse(t, clusterYAML, before))

	g.Expect(errs).To(BeEmpty())
}
