// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// clouds are values of --cloud-provider of controller managers that manage Nodes that may be in VCD.
var clouds = []string{"vmware-cloud-director", "vsphere", "openstack", "cloudstack", "external-cloudstack"}

// controllerFlags are flags of controller managers that other programs with --cloud-provider do not have.
var controllerFlags = []string{
	"--allocate-node-cidrs", "--allow-untagged-cloud", "--concurrent-service-syncs", "--configure-cloud-routes",
	"--controllers", "--node-monitor-period", "--node-status-update-frequency", "--route-reconciliation-period",
	"--use-service-account-credentials",
}

// otherPrograms are parts of the names of programs that have the flag --cloud-provider, but are not controller
// managers.
var otherPrograms = []string{"cluster-autoscaler", "kubelet", "kube-apiserver"}

// autoscalerFlags are flags of cluster-autoscaler that controller managers do not have. They identify it under any
// name.
var autoscalerFlags = []string{
	"--balance-similar-node-groups", "--expander", "--max-node-provision-time", "--node-group-auto-discovery", "--nodes",
	"--scale-down-delay-after-add", "--scale-down-enabled", "--scale-down-unneeded-time",
	"--scale-down-utilization-threshold", "--skip-nodes-with-local-storage", "--skip-nodes-with-system-pods",
}

// foreign reports another cloud controller manager in the workload cluster, or a configuration that cannot be replaced,
// and how to remove them.
func (w *guest) foreign(ctx context.Context) (phases.Result, error) {
	config, err := w.config(ctx)
	if err != nil {
		return phases.Done, err
	}
	if config != nil && immutable(config) {
		return w.foreignBeside(ctx, configName+" (immutable)")
	}
	return w.foreignBeside(ctx)
}

// foreignBeside reports other cloud controller managers in the workload cluster, in addition to the given findings.
func (w *guest) foreignBeside(ctx context.Context, found ...string) (phases.Result, error) {
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{},
		&appsv1.DaemonSetList{},
		&appsv1.StatefulSetList{},
		&corev1.PodList{},
	} {
		options := []client.ListOption{client.Limit(inspectPage)}
		if _, pods := list.(*corev1.PodList); pods {
			options = append(options, client.InNamespace(addons.Namespace))
		}
		for more := true; more; more = list.GetContinue() != "" {
			err := w.List(ctx, list, append(options, client.Continue(list.GetContinue()))...)
			if err != nil && !meta.IsNoMatchError(err) { // A kind that is not served has no objects.
				return phases.Done, &addon.Error{Err: err}
			}
			found = append(found, w.foreignIn(list)...)
		}
	}
	if len(found) == 0 {
		return phases.Done, nil
	}
	slices.Sort(found)
	return phases.Fail(intervals.Remedy, infrav1.CloudProviderConflictReason,
		"Another cloud controller manager is installed in the workload cluster: remove %s and its installer, such as a ClusterResourceSet that selects this Cluster, or set spec.cloudProvider.mode to External",
		phases.Few(found)), nil
}

// foreignIn returns the cloud controller managers in a list that do not belong to this cluster.
func (w *guest) foreignIn(list client.ObjectList) []string {
	var found []string
	for _, p := range programsIn(list) {
		if p.of.Annotations[infrav1.CloudProviderOfAnnotation] == w.InfraID {
			continue
		}
		if i := slices.IndexFunc(p.pod.Containers, isCloudProvider); i >= 0 {
			found = append(found, fmt.Sprintf("%s %s/%s (%s)", p.kind, p.of.Namespace, p.of.Name,
				p.pod.Containers[i].Image))
		}
	}
	return found
}

// A program is a workload in a workload cluster.
type program struct {
	kind string
	of   *metav1.ObjectMeta
	pod  *corev1.PodSpec
}

func programsIn(list client.ObjectList) []program {
	var all []program
	switch l := list.(type) {
	case *appsv1.DeploymentList:
		for i := range l.Items {
			all = append(all, program{"Deployment", &l.Items[i].ObjectMeta, &l.Items[i].Spec.Template.Spec})
		}
	case *appsv1.DaemonSetList:
		for i := range l.Items {
			all = append(all, program{"DaemonSet", &l.Items[i].ObjectMeta, &l.Items[i].Spec.Template.Spec})
		}
	case *appsv1.StatefulSetList:
		for i := range l.Items {
			all = append(all, program{"StatefulSet", &l.Items[i].ObjectMeta, &l.Items[i].Spec.Template.Spec})
		}
	case *corev1.PodList:
		for i := range l.Items {
			all = append(all, program{podKind(&l.Items[i]), &l.Items[i].ObjectMeta, &l.Items[i].Spec})
		}
	}
	return slices.DeleteFunc(all, func(p program) bool { return p.kind == "" })
}

// podKind returns the kind, for messages, of a pod that no workload object controls. It is empty for all other pods.
func podKind(pod *corev1.Pod) string {
	_, mirrored := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return ""
	case mirrored:
		return "static Pod"
	case metav1.GetControllerOfNoCopy(pod) == nil:
		return "Pod"
	}
	return ""
}

// config returns the configuration of a cloud controller manager in the workload cluster; nil if it does not exist.
func (w *guest) config(ctx context.Context) (*corev1.ConfigMap, error) {
	config := &corev1.ConfigMap{}
	err := w.Get(ctx, client.ObjectKey{Namespace: addons.Namespace, Name: addons.ConfigMapName}, config)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, &addon.Error{Err: err}
	}
	return config, nil
}

func immutable(config *corev1.ConfigMap) bool { return ptr.Deref(config.Immutable, false) }

// isCloudProvider reports whether a container runs a cloud controller manager, according to the name of its image or
// program, or to its flags.
func isCloudProvider(c corev1.Container) bool {
	words := slices.Concat(c.Command, c.Args)
	names := namesOf(c.Image, words)
	switch {
	case slices.ContainsFunc(names, isCloudProviderName):
		return true
	case slices.ContainsFunc(names, isOtherProgram):
		return false
	}
	return hasCloudProviderFlags(words)
}

// namesOf returns the names of an image and of its program. Some images, such as hyperkube, contain several programs,
// which the second word selects.
func namesOf(image string, words []string) []string {
	image, _, _ = strings.Cut(path.Base(image), "@")
	image, _, _ = strings.Cut(image, ":")
	names := []string{image}
	for _, word := range words[:min(2, len(words))] {
		if !strings.HasPrefix(word, "-") {
			names = append(names, path.Base(word))
		}
	}
	return names
}

func isCloudProviderName(name string) bool {
	return name == addons.Repository || strings.HasSuffix(name, "cloud-controller-manager")
}

func isOtherProgram(name string) bool {
	return slices.ContainsFunc(otherPrograms, func(part string) bool { return strings.Contains(name, part) })
}

// hasCloudProviderFlags reports whether a command line is that of a cloud controller manager, or of a
// kube-controller-manager that includes one.
func hasCloudProviderFlags(words []string) bool {
	cloud := ""
	controllers := false
	for i, word := range words {
		name, value, given := strings.Cut(word, "=")
		if !given && i+1 < len(words) {
			value = words[i+1]
		}
		if slices.Contains(autoscalerFlags, name) {
			return false
		}
		if name == "--cloud-provider" && value != "external" {
			cloud = value
		}
		controllers = controllers || slices.Contains(controllerFlags, name)
	}
	return slices.Contains(clouds, cloud) || cloud != "" && controllers
}
