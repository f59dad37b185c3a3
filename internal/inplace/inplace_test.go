// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

const base = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"

// call sends a request to a hook, as Cluster API does, and reads its response.
func call(t *testing.T, path string, request, response any) {
	t.Helper()
	g := NewWithT(t)
	mux := http.NewServeMux()
	g.Expect(Register(muxServer{mux})).To(Succeed())
	body, err := json.Marshal(request)
	g.Expect(err).NotTo(HaveOccurred())
	recorder := httptest.NewRecorder()
	mux.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body)))
	g.Expect(recorder.Code).To(Equal(http.StatusOK), recorder.Body.String())
	g.Expect(json.Unmarshal(recorder.Body.Bytes(), response)).To(Succeed())
}

type muxServer struct{ mux *http.ServeMux }

func (s muxServer) Register(path string, handler http.Handler) { s.mux.Handle(path, handler) }

// object returns an object with a spec in YAML, as a request contains it.
func object(t *testing.T, kind, spec string) runtime.RawExtension {
	t.Helper()
	text := "{apiVersion: " + infrav1.GroupVersion.String() + ", kind: " + kind + ", metadata: {name: md-0}, spec: " + spec + "}"
	raw, err := yaml.YAMLToJSON([]byte(text))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return runtime.RawExtension{Raw: raw}
}

var changeTests = []struct {
	name             string
	current, desired string
	patch            string // of the spec of the machine; empty: none
}{
	{name: "no change", current: `{template: a, cpus: 2}`, desired: `{template: a, cpus: 2}`},
	{name: "more CPUs", current: `{template: a, cpus: 2}`, desired: `{template: a, cpus: 4}`, patch: `{cpus: 4}`},
	{name: "fewer CPUs", current: `{template: a, cpus: 4}`, desired: `{template: a, cpus: 2}`, patch: `{cpus: 2}`},
	{name: "CPUs instead of those of the template", current: `{template: a}`, desired: `{template: a, cpus: 2}`, patch: `{cpus: 2}`},
	{name: "CPUs of the template again", current: `{template: a, cpus: 2}`, desired: `{template: a}`},
	{name: "memory", current: `{template: a, memory: 4Gi}`, desired: `{template: a, memory: 8Gi}`, patch: `{memory: 8Gi}`},
	{name: "memory in another notation", current: `{template: a, memory: 4Gi}`, desired: `{template: a, memory: 4096Mi}`, patch: `{memory: 4096Mi}`},
	{name: "a larger disk", current: `{template: a, diskSize: 20Gi}`, desired: `{template: a, diskSize: 40Gi}`, patch: `{diskSize: 40Gi}`},
	{name: "a smaller disk", current: `{template: a, diskSize: 40Gi}`, desired: `{template: a, diskSize: 20Gi}`},
	{name: "a disk that may be smaller than that of the template", current: `{template: a}`, desired: `{template: a, diskSize: 20Gi}`},
	{name: "a disk of the template's size again", current: `{template: a, diskSize: 20Gi}`, desired: `{template: a}`},
	{name: "another template", current: `{template: a}`, desired: `{template: b}`},
	{name: "another template and more CPUs", current: `{template: a, cpus: 2}`, desired: `{template: b, cpus: 4}`, patch: `{cpus: 4}`},
	{name: "another sizing policy", current: `{template: a, sizingPolicy: s}`, desired: `{template: a, sizingPolicy: m}`},
	{name: "CPUs instead of a sizing policy", current: `{template: a, sizingPolicy: s}`, desired: `{template: a, cpus: 4}`},
	{name: "an additional disk", current: `{template: a}`, desired: `{template: a, additionalDisks: [{name: data, size: 10Gi}]}`},
	{name: "another mode of power-off", current: `{template: a}`, desired: `{template: a, powerOffMode: Soft}`, patch: `{powerOffMode: Soft}`},
	{
		name:    "the default mode of power-off",
		current: `{template: a, powerOffMode: Soft}`,
		desired: `{template: a}`,
		patch:   `{powerOffMode: null}`,
	},
	{
		name:    "all at once",
		current: `{template: a, cpus: 2, memory: 4Gi, diskSize: 20Gi}`,
		desired: `{template: a, cpus: 4, memory: 8Gi, diskSize: 40Gi, powerOffPolicy: PowerOn, shutdownTimeoutSeconds: 30}`,
		patch:   `{cpus: 4, memory: 8Gi, diskSize: 40Gi, powerOffPolicy: PowerOn, shutdownTimeoutSeconds: 30}`,
	},
}

func TestFieldsThatChangeInPlace(t *testing.T) {
	for _, tt := range changeTests {
		t.Run(tt.name, func(t *testing.T) {
			request := runtimehooksv1.CanUpdateMachineRequest{}
			request.Current.InfrastructureMachine = object(t, "VCDMachine", tt.current)
			request.Desired.InfrastructureMachine = object(t, "VCDMachine", tt.desired)
			var response runtimehooksv1.CanUpdateMachineResponse
			call(t, base+"canupdatemachine/can-update-machine", request, &response)

			expectPatch(t, response.CommonResponse, response.InfrastructureMachinePatch, `{spec: `+tt.patch+`}`, tt.patch == "")

			sets := runtimehooksv1.CanUpdateMachineSetRequest{}
			sets.Current.InfrastructureMachineTemplate = object(t, "VCDMachineTemplate", `{template: {spec: `+tt.current+`}}`)
			sets.Desired.InfrastructureMachineTemplate = object(t, "VCDMachineTemplate", `{template: {spec: `+tt.desired+`}}`)
			var ofSet runtimehooksv1.CanUpdateMachineSetResponse
			call(t, base+"canupdatemachineset/can-update-machine-set", sets, &ofSet)

			expectPatch(t, ofSet.CommonResponse, ofSet.InfrastructureMachineTemplatePatch,
				`{spec: {template: {spec: `+tt.patch+`}}}`, tt.patch == "")
		})
	}
}

func expectPatch(t *testing.T, status runtimehooksv1.CommonResponse, patch runtimehooksv1.Patch, want string, none bool) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(status.Status).To(Equal(runtimehooksv1.ResponseStatusSuccess), status.Message)
	if none {
		g.Expect(patch.IsDefined()).To(BeFalse(), string(patch.Patch))
		return
	}
	g.Expect(patch.PatchType).To(Equal(runtimehooksv1.JSONMergePatchType))
	wanted, err := yaml.YAMLToJSON([]byte(want))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(patch.Patch).To(MatchJSON(wanted))
}

func TestMachinesOfOtherProvidersAreReplaced(t *testing.T) {
	request := runtimehooksv1.CanUpdateMachineRequest{}
	request.Current.InfrastructureMachine = object(t, "OtherMachine", `{cpus: 2}`)
	request.Desired.InfrastructureMachine = object(t, "OtherMachine", `{cpus: 4}`)
	var response runtimehooksv1.CanUpdateMachineResponse

	call(t, base+"canupdatemachine/can-update-machine", request, &response)

	expectPatch(t, response.CommonResponse, response.InfrastructureMachinePatch, "", true)
	update := runtimehooksv1.UpdateMachineRequest{}
	update.Desired.InfrastructureMachine = object(t, "OtherMachine", `{cpus: 4}`)
	var updated runtimehooksv1.UpdateMachineResponse
	call(t, base+"updatemachine/update-machine", update, &updated)
	g := NewWithT(t)
	g.Expect(updated.Status).To(Equal(runtimehooksv1.ResponseStatusFailure))
	g.Expect(updated.Message).To(ContainSubstring("OtherMachine, which this provider cannot update in place"))
}

func TestProgressOfAnUpdate(t *testing.T) {
	const at = `"2026-08-01T12:00:00Z"`
	tests := []struct{ name, spec, message string }{
		{name: "nothing is known of the VM", spec: `{cpus: 4}`, message: "Waiting for the first observation"},
		{name: "CPUs are missing", spec: `{cpus: 4, recordedState: {vm: {cpus: 2}}}`, message: "Changing the CPUs"},
		{name: "memory is missing", spec: `{memory: 8Gi, recordedState: {vm: {cpus: 2, memoryMiB: 4096}}}`, message: "Changing the memory"},
		{name: "the disk is small", spec: `{diskSize: 40Gi, recordedState: {vm: {diskMiB: 20480}}}`, message: "Expanding the first disk"},
		{
			name:    "the VM is off, although it has its CPUs",
			spec:    `{cpus: 4, recordedState: {vm: {cpus: 4}, restart: {requestedAt: ` + at + `}}}`,
			message: "Restarting the VM",
		},
		{
			name:    "VCD rejected the CPUs",
			spec:    `{cpus: 4, recordedState: {vm: {cpus: 2}, restart: {requestedAt: ` + at + `, failedAt: ` + at + `}}}`,
			message: "VCD rejected",
		},
		{
			name: "the VM is as desired",
			spec: `{cpus: 4, memory: 8Gi, diskSize: 40Gi, recordedState: {vm: {cpus: 4, memoryMiB: 8192, diskMiB: 40960}}}`,
		},
		{name: "the VM has what the template gave it", spec: `{recordedState: {vm: {cpus: 4, memoryMiB: 8192, diskMiB: 40960}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			request := runtimehooksv1.UpdateMachineRequest{}
			request.Desired.InfrastructureMachine = object(t, "VCDMachine", tt.spec)
			var response runtimehooksv1.UpdateMachineResponse

			call(t, base+"updatemachine/update-machine", request, &response)

			g.Expect(response.Status).To(Equal(runtimehooksv1.ResponseStatusSuccess))
			if tt.message == "" {
				g.Expect(response.RetryAfterSeconds).To(BeZero())
				g.Expect(response.Message).To(BeEmpty())
				return
			}
			g.Expect(response.RetryAfterSeconds).To(BeNumerically(">", 0))
			g.Expect(response.Message).To(And(HavePrefix(tt.message), HaveSuffix("VCDMachine md-0")))
		})
	}
}

func TestClusterAPIDiscoversTheHooks(t *testing.T) {
	g := NewWithT(t)
	var response runtimehooksv1.DiscoveryResponse

	call(t, base+"discovery", runtimehooksv1.DiscoveryRequest{}, &response)

	g.Expect(response.Status).To(Equal(runtimehooksv1.ResponseStatusSuccess))
	g.Expect(response.Kind).To(Equal("DiscoveryResponse"))
	var found []string
	for _, h := range response.Handlers {
		found = append(found, h.RequestHook.Hook)
	}
	g.Expect(found).To(ConsistOf("CanUpdateMachine", "CanUpdateMachineSet", "UpdateMachine"))
}

func TestBadRequestsAreRefused(t *testing.T) {
	g := NewWithT(t)
	mux := http.NewServeMux()
	g.Expect(Register(muxServer{mux})).To(Succeed())
	for _, body := range []string{"", "no JSON", `{"current": ` + strings.Repeat(" ", maxRequest) + `{}}`} {
		recorder := httptest.NewRecorder()

		mux.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost,
			base+"canupdatemachine/can-update-machine", strings.NewReader(body)))

		g.Expect(recorder.Code).To(Equal(http.StatusBadRequest))
	}

	var response runtimehooksv1.CanUpdateMachineResponse
	call(t, base+"canupdatemachine/can-update-machine", runtimehooksv1.CanUpdateMachineRequest{}, &response)
	g.Expect(response.Status).To(Equal(runtimehooksv1.ResponseStatusFailure), "a request without objects")
}
