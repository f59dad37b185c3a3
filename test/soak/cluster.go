// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// namespaceOf returns the namespace of the clusters of a slot.
func namespaceOf(slot int) string { return shards()[slot%len(shards())] }

// A tenant is a cluster of the plan, from its creation to its deletion. Only the goroutine of its slot uses it.
type tenant struct {
	world     *world
	name      string
	namespace string
	site      *site
	layout    layout
	birth     event
	rolls     int // number of templates that were added
}

func (w *world) newTenant(birth event) *tenant {
	l := layouts()[birth.Layout]
	return &tenant{
		world:     w,
		name:      birth.Cluster,
		namespace: namespaceOf(birth.Slot),
		site:      w.sites[l.site],
		layout:    l,
		birth:     birth,
	}
}

// act executes an event of the plan on the cluster. Objects that do not exist yet, or not anymore, are left out, as by
// a user who looks first.
func (t *tenant) act(ctx context.Context, e event) error {
	switch e.Action { //nolint:exhaustive // the others are disturbances
	case actCreate:
		return t.create(ctx)
	case actScale:
		return t.scale(ctx, e.Number)
	case actPlane:
		return t.scalePlane(ctx, 1+2*(e.Number%2))
	case actRoll:
		return t.roll(ctx, "")
	case actRollPlane:
		return t.rollPlane(ctx, "")
	case actUpgrade:
		return t.upgrade(ctx)
	case actRemediate:
		return t.remediate(ctx, e.Number)
	case actService:
		return t.world.createService(ctx, t.namespace, t.name, e.Number)
	case actNoService:
		return t.world.deleteService(ctx, t.namespace, t.name, e.Number)
	case actDelete:
		return t.delete(ctx)
	}
	return nil
}

// version returns the Kubernetes version with which the cluster starts.
func (t *tenant) version() string {
	if t.birth.Older {
		return olderVersion
	}
	return programs.KubernetesVersion
}

// endpoint returns the address of the control plane. Clusters that follow each other in a slot have different ones.
func (t *tenant) endpoint() string {
	_, generation, _ := strings.Cut(strings.TrimPrefix(t.name, "soak-"), "-")
	number, _ := strconv.Atoi(generation)
	network := 200 + number%20 + 20*t.site.index
	return fmt.Sprintf("10.0.%d.%d", network, t.birth.Slot%250+1)
}

// create creates the objects of the shipped template, and lets the cloud controller manager live if the cluster has one.
func (t *tenant) create(ctx context.Context) error {
	objects, err := t.manifest()
	if err != nil {
		return err
	}
	for i := range objects {
		object := &objects[i]
		if err := t.adapt(object); err != nil {
			return fmt.Errorf("adapting %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		err := retryRequest(ctx, func() error {
			err := t.world.client.Create(ctx, object.DeepCopy())
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if t.birth.Slot >= t.world.ccmCount {
		return nil
	}
	return t.startCCM(ctx)
}

// manifest renders the template, as clusterctl does.
func (t *tenant) manifest() ([]unstructured.Unstructured, error) {
	path := filepath.Join(t.world.management.Root, "templates", "cluster-template"+t.layout.template+".yaml")
	template, err := os.ReadFile(path) //nolint:gosec // a file of the repository
	if err != nil {
		return nil, fmt.Errorf("reading a template: %w", err)
	}
	values := t.variables()
	filled, err := yamlprocessor.NewSimpleProcessor().Process(template,
		func(name string) (string, error) { return values[name], nil })
	if err != nil {
		return nil, fmt.Errorf("rendering a template: %w", err)
	}
	return utilyaml.ToUnstructured(filled)
}

func (t *tenant) variables() map[string]string {
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	values := map[string]string{
		"CLUSTER_NAME":                    t.name,
		"KUBERNETES_VERSION":              t.version(),
		"CONTROL_PLANE_MACHINE_COUNT":     "1",
		"WORKER_MACHINE_COUNT":            strconv.Itoa(t.birth.Number % maxWorkers),
		"CONTROL_PLANE_ENDPOINT_IP":       t.endpoint(),
		"CONTROL_PLANE_ENDPOINT_IPV6":     fmt.Sprintf("fd00:100::a:%x", t.birth.Slot),
		"CONTROL_PLANE_ENDPOINT_POOL":     "virtual-ips",
		"NODE_POOL":                       "nodes",
		"NODE_POOL_IPV6":                  "nodes-v6",
		"VCD_SITE":                        t.site.URL(),
		"VCD_ORGANIZATION":                "acme",
		"VCD_ORGANIZATION_VDC":            "acme-vdc",
		"VCD_ORGANIZATION_VDC_NETWORK":    "nodes",
		"VCD_CATALOG":                     "kubernetes",
		"VCD_TEMPLATE_NAME":               t.layout.image + t.version(),
		"VCD_CONTROL_PLANE_SIZING_POLICY": "small",
		"VCD_WORKER_SIZING_POLICY":        "small",
		"VCD_USERNAME_B64":                encode(managersUser),
		"VCD_PASSWORD_B64":                encode(t.site.password()),
		"VCD_CCM_USERNAME_B64":            encode(ccmUser),
		"VCD_CCM_PASSWORD_B64":            encode(t.site.password()),
		"VCD_CA_BUNDLE_B64":               base64.StdEncoding.EncodeToString(t.site.CA()),
	}
	if t.birth.Identity == identityToken {
		values["VCD_USERNAME_B64"] = ""
		values["VCD_PASSWORD_B64"] = ""
		values["VCD_API_TOKEN_B64"] = encode(t.site.token(managersUser))
	}
	maps.Copy(values, t.layout.values)
	return values
}

// adapt changes an object of the template: its namespace, its manager, its identity, and as the layout requires.
func (t *tenant) adapt(object *unstructured.Unstructured) error {
	object.SetNamespace(t.namespace)
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.WatchLabel] = t.namespace
	if object.GetKind() == "Secret" {
		labels[siteLabel] = fmt.Sprint(t.site.index)
		labels[userLabel] = managersUser
		if strings.HasSuffix(object.GetName(), "-ccm-credentials") {
			labels[userLabel] = ccmUser
		}
	}
	object.SetLabels(labels)
	if err := useIdentity(object, t.name, t.birth.Identity, sharedIdentity(t.site.index, t.namespace)); err != nil {
		return err
	}
	if err := t.labelMachines(object); err != nil {
		return err
	}
	if t.layout.adapt == nil {
		return nil
	}
	return t.layout.adapt(object)
}

// labelMachines gives the machines of an object to the manager, and allows a health check to replace the only worker.
func (t *tenant) labelMachines(object *unstructured.Unstructured) error {
	put := func(value any, path ...string) error {
		return unstructured.SetNestedField(object.Object, value, path...)
	}
	switch object.GetKind() {
	case "KubeadmControlPlane":
		return put(t.namespace, "spec", "machineTemplate", "metadata", "labels", clusterv1.WatchLabel)
	case "MachineDeployment":
		return put(t.namespace, "spec", "template", "metadata", "labels", clusterv1.WatchLabel)
	case "MachineHealthCheck":
		return put("100%", "spec", "remediation", "triggerIf", "unhealthyLessThanOrEqualTo")
	}
	return nil
}

// scope returns the options that select the objects of the cluster.
func (t *tenant) scope() []client.ListOption {
	return []client.ListOption{
		client.InNamespace(t.namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: t.name},
	}
}

// deployments lists the MachineDeployments of the cluster.
func (t *tenant) deployments(ctx context.Context) ([]clusterv1.MachineDeployment, error) {
	list := &clusterv1.MachineDeploymentList{}
	err := retryRequest(ctx, func() error { return t.world.client.List(ctx, list, t.scope()...) })
	return list.Items, err
}

// patch applies a merge patch to an object if it exists.
func (t *tenant) patch(ctx context.Context, object client.Object, patch string) error {
	return retryRequest(ctx, func() error {
		return client.IgnoreNotFound(t.world.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))))
	})
}

// scale changes the number of workers of one deployment.
func (t *tenant) scale(ctx context.Context, number int) error {
	deployments, err := t.deployments(ctx)
	if err != nil || len(deployments) == 0 {
		return err
	}
	chosen := &deployments[number%len(deployments)]
	return t.patch(ctx, chosen, fmt.Sprintf(`{"spec":{"replicas":%d}}`, number%(maxWorkers+1)))
}

func (t *tenant) plane() *controlplanev1.KubeadmControlPlane {
	return &controlplanev1.KubeadmControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: t.name + "-control-plane"},
	}
}

func (t *tenant) scalePlane(ctx context.Context, replicas int) error {
	return t.patch(ctx, t.plane(), fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

// roll replaces all workers by those from new templates. An empty version keeps the version.
func (t *tenant) roll(ctx context.Context, version string) error {
	deployments, err := t.deployments(ctx)
	if err != nil {
		return err
	}
	for i := range deployments {
		old := deployments[i].Spec.Template.Spec.InfrastructureRef.Name
		template, err := t.copyTemplate(ctx, old, version)
		if err != nil || template == "" {
			return err
		}
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{%s"infrastructureRef":{"name":%q}}}}}`, versionField(version),
			template)
		if err := t.patch(ctx, &deployments[i], patch); err != nil {
			return err
		}
	}
	return nil
}

// rollPlane replaces the control plane by one from a new template.
func (t *tenant) rollPlane(ctx context.Context, version string) error {
	plane := t.plane()
	err := retryRequest(ctx, func() error {
		return client.IgnoreNotFound(t.world.client.Get(ctx, client.ObjectKeyFromObject(plane), plane))
	})
	if err != nil || plane.UID == "" {
		return err
	}
	template, err := t.copyTemplate(ctx, plane.Spec.MachineTemplate.Spec.InfrastructureRef.Name, version)
	if err != nil || template == "" {
		return err
	}
	return t.patch(ctx, plane, fmt.Sprintf(
		`{"spec":{%s"machineTemplate":{"spec":{"infrastructureRef":{"name":%q}}}}}`, versionField(version), template))
}

func versionField(version string) string {
	if version == "" {
		return ""
	}
	return fmt.Sprintf(`"version":%q,`, version)
}

// upgrade upgrades the control plane and the workers. Cluster API upgrades the workers after the control plane.
func (t *tenant) upgrade(ctx context.Context) error {
	if err := t.rollPlane(ctx, programs.KubernetesVersion); err != nil {
		return err
	}
	return t.roll(ctx, programs.KubernetesVersion)
}

// copyTemplate creates a template of machines with another size, and with the image of a version if it is not empty. It
// returns its name, or nothing if the old template does not exist anymore.
func (t *tenant) copyTemplate(ctx context.Context, name, version string) (string, error) {
	old := &infrav1.VCDMachineTemplate{}
	key := client.ObjectKey{Namespace: t.namespace, Name: name}
	err := retryRequest(ctx, func() error { return client.IgnoreNotFound(t.world.client.Get(ctx, key, old)) })
	if err != nil || old.UID == "" {
		return "", err
	}
	t.rolls++
	base, _, _ := strings.Cut(name, "-roll-")
	next := &infrav1.VCDMachineTemplate{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.namespace,
			Name:      fmt.Sprintf("%s-roll-%d", base, t.rolls),
			Labels:    map[string]string{clusterv1.WatchLabel: t.namespace, clusterv1.ClusterNameLabel: t.name},
		},
		Spec: *old.Spec.DeepCopy(),
	}
	spec := &next.Spec.Template.Spec
	if spec.SizingPolicy == "small" {
		spec.SizingPolicy = "large"
	} else {
		spec.SizingPolicy = "small"
	}
	if version != "" {
		spec.Template = t.layout.image + version
	}
	err = retryRequest(ctx, func() error {
		err := t.world.client.Create(ctx, next.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	return next.Name, err
}

// remediate powers off the VM of a worker, as a failing host does, and marks its Machine for remediation.
func (t *tenant) remediate(ctx context.Context, number int) error {
	list := &clusterv1.MachineList{}
	scope := append(t.scope(), client.HasLabels{clusterv1.MachineDeploymentNameLabel})
	err := retryRequest(ctx, func() error { return t.world.client.List(ctx, list, scope...) })
	if err != nil || len(list.Items) == 0 {
		return err
	}
	chosen := &list.Items[number%len(list.Items)]
	id, err := providerid.Parse(chosen.Spec.ProviderID)
	if err != nil {
		return nil //nolint:nilerr // it has no VM yet
	}
	t.site.Edit(func(e *vcdsim.Editor) {
		if vm := e.VM(id); vm != nil {
			e.PowerOff(vm)
		}
	})
	return t.patch(ctx, chosen,
		fmt.Sprintf(`{"metadata":{"annotations":{%q:""}}}`, clusterv1.RemediateMachineAnnotation))
}

// delete deletes the cluster, and does not wait for its end.
func (t *tenant) delete(ctx context.Context) error {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: t.name}}
	return retryRequest(ctx, func() error { return client.IgnoreNotFound(t.world.client.Delete(ctx, cluster)) })
}
