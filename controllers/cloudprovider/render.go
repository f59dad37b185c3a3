// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
)

const (
	// availableControlPlane is the number of control-plane nodes from which a second cloud controller manager on
	// standby is useful.
	availableControlPlane = 3
	// hashLength is how many characters of a hash distinguish two configurations.
	hashLength = 16
)

// render returns the desired objects in the workload cluster, marked as this cluster's. The time applied, if set, makes
// Cluster API apply them again.
func (s *scope) render(applied string) ([]unstructured.Unstructured, error) {
	settings, err := s.config()
	if err != nil {
		return nil, err
	}
	config, err := yaml.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration of the cloud controller manager: %w", err)
	}
	proxy, err := s.proxy()
	if err != nil {
		return nil, err
	}
	endpoint := s.endpoint()
	cloud := addons.ManagedVCD()
	ccm := addons.CCM{
		Cloud:      &cloud,
		Image:      imageOf(s.vcdCluster.Spec.CloudProvider.Image, s.reconciler.Image),
		Replicas:   replicas(s.cluster),
		ConfigHash: hashOf(config, proxy),
		APIHost:    endpoint.Host,
		APIPort:    endpoint.Port,
	}
	if len(proxy) > 0 {
		ccm.ProxySecret = addons.ProxyName
	}
	objects, err := ccm.Objects()
	if err != nil {
		return nil, err
	}
	parts, err := s.data(config)
	if err != nil {
		return nil, err
	}
	announcer, err := kubeVIP(&s.vcdCluster.Spec)
	if err != nil {
		return nil, err
	}
	objects = slices.Concat(objects, parts, proxy, announcer)
	s.set.Mark(objects, applied)
	return objects, nil
}

// endpoint returns the control-plane endpoint through which the cloud controller manager reaches the API server: that
// of the Cluster, or of the VCDCluster until Cluster API has copied it.
func (s *scope) endpoint() clusterv1.APIEndpoint {
	if s.cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return s.cluster.Spec.ControlPlaneEndpoint
	}
	return s.vcdCluster.Spec.ControlPlaneEndpoint
}

// hashOf returns a hash of the data that pods read only once: the configuration, and the variables of the proxy, if
// any.
func hashOf(config []byte, proxy []unstructured.Unstructured) string {
	hash := sha256.New()
	_, _ = hash.Write(config) // never fails
	for _, secret := range proxy {
		_, _ = fmt.Fprint(hash, secret.Object["data"])
	}
	return hex.EncodeToString(hash.Sum(nil))[:hashLength]
}

// imageOf returns the image for a cluster: its own, or that of the manager. An image without a version gets the
// manager's.
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

// data returns the ConfigMap and the Secret of the cloud controller manager. The token of a service account is not
// included: it is seeded once, and then only the cloud controller manager writes it.
func (s *scope) data(config []byte) ([]unstructured.Unstructured, error) {
	settings, err := addons.ConfigMap(config)
	if err != nil {
		return nil, err
	}
	if s.shared.ServiceAccount {
		return []unstructured.Unstructured{settings}, nil
	}
	credentials, err := addons.ManagedCredentials(credentialFiles(s.shared))
	return []unstructured.Unstructured{settings, credentials}, err
}

// credentialFiles returns the data of the Secret that the cloud controller manager reads.
func credentialFiles(s identities.Shared) map[string][]byte {
	if s.Config.Credentials.APIToken != "" {
		return map[string][]byte{addons.RefreshTokenKey: []byte(s.Config.Credentials.APIToken)}
	}
	return map[string][]byte{
		infrav1.SecretUsername: []byte(s.Config.Credentials.Username),
		infrav1.SecretPassword: []byte(s.Config.Credentials.Password),
	}
}

// replicas returns the number of cloud controller managers. There is a second one if the control plane also survives
// the loss of a node.
func replicas(cluster *clusterv1.Cluster) int32 {
	if status := cluster.Status.ControlPlane; status != nil &&
		ptr.Deref(status.DesiredReplicas, 0) >= availableControlPlane {
		return 2
	}
	return 1
}
