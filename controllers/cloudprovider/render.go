package cloudprovider

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
)

const (
	// availableControlPlane is how many control-plane nodes make a second cloud controller manager on standby
	// worthwhile.
	availableControlPlane = 3
	// hashLength is how much of a hash is enough to distinguish two configurations.
	hashLength = 16
)

// render returns what should be in the workload cluster, all of it marked as this cluster's. Applied is when it was
// last applied again.
func (s *scope) render(applied string) ([]unstructured.Unstructured, error) {
	settings, err := s.config()
	if err != nil {
		return nil, err
	}
	config, err := yaml.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration of the cloud controller manager: %w", err)
	}
	sum := sha256.Sum256(config)
	ccm := addons.CCM{
		Image: imageOf(s.vcdCluster.Spec.CloudProvider.Image, s.Image), Replicas: replicas(s.cluster),
		ConfigHash: hex.EncodeToString(sum[:])[:hashLength],
		APIHost:    s.cluster.Spec.ControlPlaneEndpoint.Host, APIPort: s.cluster.Spec.ControlPlaneEndpoint.Port,
	}
	objects, err := ccm.Objects()
	if err != nil {
		return nil, err
	}
	parts, err := s.data(config)
	if err != nil {
		return nil, err
	}
	key, err := serviceKey(s.secret)
	if err != nil {
		return nil, err
	}
	objects = append(replace(objects, key), parts...)
	mark(objects, s.vcdCluster)
	if applied != "" {
		addons.Annotate(objects, map[string]string{infrav1.CloudProviderAppliedAnnotation: applied})
	}
	return objects, nil
}

// serviceKeyBytes is how long the key is that proves what is written down on Services.
const serviceKeyBytes = 32

// serviceKey returns the Secret with the key that proves what is written down on Services: the one that is applied
// already, else a new one. An empty Secret would not do: a ClusterResourceSet takes away what is not in its manifests.
func serviceKey(applied *corev1.Secret) (unstructured.Unstructured, error) {
	if applied != nil {
		objects, err := addons.Parse(applied.Data[manifestsKey])
		if err != nil {
			objects = nil // damaged: it is written again, with a new key
		}
		for _, u := range objects {
			key, _, _ := unstructured.NestedString(u.Object, "data", addons.ServiceKeyField)
			value, err := base64.StdEncoding.DecodeString(key)
			if u.GetName() == addons.ServiceKeyName && err == nil && len(value) == serviceKeyBytes {
				return addons.ServiceKey(value)
			}
		}
	}
	value := make([]byte, serviceKeyBytes)
	if _, err := rand.Read(value); err != nil {
		return unstructured.Unstructured{}, fmt.Errorf("making a key: %w", err)
	}
	return addons.ServiceKey(value)
}

// replace puts an object in the place of the one with its kind and name.
func replace(objects []unstructured.Unstructured, by unstructured.Unstructured) []unstructured.Unstructured {
	out := slices.Clone(objects)
	for i := range out {
		if itemOf(out[i]) == itemOf(by) {
			out[i] = by
		}
	}
	return out
}

// imageOf returns the image of a cluster: its own, or the manager's. One without a version has that of the manager's.
func imageOf(own, managers string) string {
	if own == "" {
		return managers
	}
	name := managers[strings.LastIndex(managers, "/")+1:]
	if at := strings.IndexAny(name, ":@"); at >= 0 && !strings.ContainsAny(own[strings.LastIndex(own, "/")+1:], ":@") {
		return own + name[at:]
	}
	return own
}

// data returns what the cloud controller manager reads. The token of a service account is not in it: that is seeded,
// and then written by the cloud controller manager alone.
func (s *scope) data(config []byte) ([]unstructured.Unstructured, error) {
	settings, err := addons.ConfigMap(config)
	if err != nil {
		return nil, err
	}
	id, err := addons.ClusterID(s.vcdCluster.Spec.InfraID)
	if err != nil || s.shared.ServiceAccount {
		return []unstructured.Unstructured{settings, id}, err
	}
	credentials, err := addons.Credentials(credentialFiles(s.shared))
	return []unstructured.Unstructured{settings, id, credentials}, err
}

// mark marks objects in the workload cluster as ours.
func mark(objects []unstructured.Unstructured, c *infrav1.VCDCluster) {
	addons.Annotate(objects, map[string]string{infrav1.CloudProviderOfAnnotation: c.Spec.InfraID})
}

// credentialFiles are the keys of the Secret that the cloud controller manager reads.
func credentialFiles(s session.Shared) map[string][]byte {
	if s.Config.Credentials.APIToken != "" {
		return map[string][]byte{addons.RefreshTokenKey: []byte(s.Config.Credentials.APIToken)}
	}
	return map[string][]byte{
		infrav1.SecretUsername: []byte(s.Config.Credentials.Username),
		infrav1.SecretPassword: []byte(s.Config.Credentials.Password),
	}
}

// replicas is how many cloud controller managers run: a second one where the control plane survives the loss of a node,
// too.
func replicas(cluster *clusterv1.Cluster) int32 {
	if status := cluster.Status.ControlPlane; status != nil &&
		ptr.Deref(status.DesiredReplicas, 0) >= availableControlPlane {
		return 2
	}
	return 1
}

// An item is an object in a workload cluster, by name.
type item struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func itemOf(u unstructured.Unstructured) item {
	return item{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

func (i item) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(i.APIVersion, i.Kind))
	u.SetNamespace(i.Namespace)
	u.SetName(i.Name)
	return u
}

// String returns the kind and the name of the object.
func (i item) String() string {
	return strings.TrimSpace(i.Kind + " " + strings.TrimPrefix(i.Namespace+"/"+i.Name, "/"))
}

func itemsOf(objects []unstructured.Unstructured) []item {
	items := make([]item, 0, len(objects))
	for _, u := range objects {
		items = append(items, itemOf(u))
	}
	return items
}

// itemNames are those of items, sorted.
func itemNames(items []item) []string {
	all := make([]string, 0, len(items))
	for _, i := range items {
		all = append(all, i.String())
	}
	slices.Sort(all)
	return all
}

// without returns the items that are not among others, each once.
func without(items, others []item) []item {
	var left []item
	for _, i := range items {
		if !slices.Contains(others, i) && !slices.Contains(left, i) {
			left = append(left, i)
		}
	}
	return left
}

// readItems reads a list of items from an annotation. An invalid one is empty.
func readItems(annotation string) []item {
	var items []item
	if json.Unmarshal([]byte(annotation), &items) != nil {
		return nil
	}
	return items
}

func writeItems(items []item) (string, error) {
	if len(items) == 0 {
		return "", nil
	}
	raw, err := json.Marshal(items)
	if err != nil {
		return "", fmt.Errorf("writing a list of objects: %w", err)
	}
	return string(raw), nil
}
