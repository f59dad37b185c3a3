// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	clusterapi "sigs.k8s.io/cluster-api/test/e2e"
	"sigs.k8s.io/cluster-api/test/framework"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
)

// The cluster template, and its ClusterClass, whose machines are not replaced but updated when a variable with files
// changes.
const (
	filesFlavor   = "files"
	filesClass    = "clusterclass-files.yaml"
	filesTemplate = "cluster-template-files.yaml"
)

var _ = Describe("Updating machines in place", Label("in-place"), func() {
	clusterapi.ClusterInPlaceUpdateSpec(ctx, func() clusterapi.ClusterInPlaceUpdateSpecInput {
		return clusterapi.ClusterInPlaceUpdateSpecInput{
			E2EConfig:             config,
			ClusterctlConfigPath:  clusterctlConfig,
			BootstrapClusterProxy: management,
			ArtifactFolder:        artifacts,
			Flavor:                ptr.To(filesFlavor),
			PostNamespaceCreated:  serveFileUpdates,
		}
	})
})

// addFiles adds a ClusterClass with a variable for files, and its cluster template, to the files of a release. Neither
// allows additional machines during a rollout, so that Cluster API can keep all machines.
func addFiles(files map[string][]byte) error {
	renamed := func(manifest []byte) []byte {
		return bytes.ReplaceAll(manifest, []byte("quick-start"), []byte(filesFlavor))
	}
	var err error
	if files[filesClass], err = withFiles(renamed(files[class])); err != nil {
		return err
	}
	files[filesTemplate], err = insertAfter(renamed(files[classTemplate]), "replicas: ${WORKER_MACHINE_COUNT}\n", `          rollout:
            strategy:
              type: RollingUpdate
              rollingUpdate: {maxSurge: 0, maxUnavailable: 1}
`)
	return err
}

// withFiles adds the variable to a ClusterClass. Control planes also have files of other patches, so the only file of
// the variable is added to them.
func withFiles(class []byte) ([]byte, error) {
	class, err := insertAfter(class, "\n  variables:\n", `    - name: files
      required: false
      schema:
        openAPIV3Schema:
          type: array
          default: []
          items:
            type: object
            properties:
              path: {type: string}
              content: {type: string}
`)
	if err != nil {
		return nil, err
	}
	class, err = insertAfter(class, "kind: KubeadmControlPlaneTemplate\nmetadata:\n  name: files-control-plane\nspec:\n  template:\n    spec:\n", `      rollout:
        strategy:
          type: RollingUpdate
          rollingUpdate: {maxSurge: 0}
`)
	if err != nil {
		return nil, err
	}
	const patch = `
    - name: additionalFiles
      enabledIf: "{{ if .files }}true{{ end }}"
      definitions:
        - selector: *controlPlane
          jsonPatches:
            - {op: add, path: /spec/template/spec/kubeadmConfigSpec/files/-, valueFrom: {variable: "files[0]"}}
        - selector: *worker
          jsonPatches:
            - {op: add, path: /spec/template/spec/files, valueFrom: {variable: files}}`
	end := bytes.Index(class, separator)
	return slices.Concat(class[:end], []byte(patch), class[end:]), nil
}

// serveFileUpdates registers a runtime extension that updates the files of machines in the namespace of the spec.
func serveFileUpdates(proxy framework.ClusterProxy, namespace string) {
	ports, err := process.ReservePorts(ctx, 1)
	Expect(err).NotTo(HaveOccurred())
	extension, err := fileUpdates(ports[0])
	Expect(err).NotTo(HaveOccurred())
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- extension.Start(serving) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})

	registration := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	registration.Spec.ClientConfig.URL = "https://127.0.0.1:" + strconv.Itoa(ports[0])
	registration.Spec.ClientConfig.CABundle = shared.CA()
	registration.Spec.NamespaceSelector = &metav1.LabelSelector{
		MatchLabels: map[string]string{corev1.LabelMetadataName: namespace},
	}
	Expect(proxy.GetClient().Create(ctx, registration)).To(Succeed())
	DeferCleanup(func() { Expect(proxy.GetClient().Delete(ctx, registration)).To(Succeed()) })
	Eventually(func(g Gomega) {
		g.Expect(proxy.GetClient().Get(ctx, client.ObjectKeyFromObject(registration), registration)).To(Succeed())
		g.Expect(registration.Status.Handlers).To(HaveLen(3), "%v", registration.Status.Conditions)
	}).WithTimeout(time.Minute).WithPolling(time.Second).Should(Succeed())
}

// fileUpdates returns a runtime extension. It accepts changes of files, and changes nothing: simulated guests have no
// files.
func fileUpdates(port int) (*server.Server, error) {
	catalog := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		return nil, err
	}
	extension, err := server.New(server.Options{
		Catalog: catalog,
		Host:    "127.0.0.1",
		Port:    port,
		CertDir: filepath.Join(shared.Dir(), "pki"),
	})
	if err != nil {
		return nil, err
	}
	return extension, errors.Join(
		extension.AddExtensionHandler(server.ExtensionHandler{
			Hook:        runtimehooksv1.CanUpdateMachine,
			Name:        "can-update-machine",
			HandlerFunc: canUpdateMachine,
		}),
		extension.AddExtensionHandler(server.ExtensionHandler{
			Hook:        runtimehooksv1.CanUpdateMachineSet,
			Name:        "can-update-machine-set",
			HandlerFunc: canUpdateMachineSet,
		}),
		extension.AddExtensionHandler(server.ExtensionHandler{
			Hook:        runtimehooksv1.UpdateMachine,
			Name:        "update-machine",
			HandlerFunc: updateMachine,
		}),
	)
}

func canUpdateMachine(_ context.Context, request *runtimehooksv1.CanUpdateMachineRequest, response *runtimehooksv1.CanUpdateMachineResponse) {
	patch, err := filesPatch(request.Desired.BootstrapConfig, "spec", "files")
	response.BootstrapConfigPatch = patch
	response.SetStatus(statusOf(err))
	response.SetMessage(messageOf(err))
}

func canUpdateMachineSet(_ context.Context, request *runtimehooksv1.CanUpdateMachineSetRequest, response *runtimehooksv1.CanUpdateMachineSetResponse) {
	patch, err := filesPatch(request.Desired.BootstrapConfigTemplate, "spec", "template", "spec", "files")
	response.BootstrapConfigTemplatePatch = patch
	response.SetStatus(statusOf(err))
	response.SetMessage(messageOf(err))
}

func updateMachine(_ context.Context, _ *runtimehooksv1.UpdateMachineRequest, response *runtimehooksv1.UpdateMachineResponse) {
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
}

func statusOf(err error) runtimehooksv1.ResponseStatus {
	if err != nil {
		return runtimehooksv1.ResponseStatusFailure
	}
	return runtimehooksv1.ResponseStatusSuccess
}

func messageOf(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// filesPatch returns a patch with the desired files of a configuration.
func filesPatch(desired runtime.RawExtension, path ...string) (runtimehooksv1.Patch, error) {
	config := &unstructured.Unstructured{}
	if err := json.Unmarshal(desired.Raw, config); err != nil {
		return runtimehooksv1.Patch{}, fmt.Errorf("reading the bootstrap configuration: %w", err)
	}
	files, _, err := unstructured.NestedSlice(config.Object, path...)
	if err != nil {
		return runtimehooksv1.Patch{}, fmt.Errorf("reading the files: %w", err)
	}
	patch := map[string]any{}
	if err := unstructured.SetNestedSlice(patch, files, path...); err != nil {
		return runtimehooksv1.Patch{}, fmt.Errorf("writing a patch: %w", err)
	}
	body, err := json.Marshal(patch)
	return runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONMergePatchType, Patch: body}, err
}
