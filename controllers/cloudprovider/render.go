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

// endpoint is the control plane endpoint by which the cloud controller manager reaches the API server: the Cluster's,
// or that of the VCDCluster until Cluster API has copied it.
func (s *scope) endpoint() clusterv1.APIEndpoint {
	if s.cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return s.cluster.Spec.ControlPlaneEndpoint
	}
	return s.vcdCluster.Spec.ControlPlaneEndpoint
}

// hashOf returns a hash of what the pods read once: the configuration, and the variables of the proxy, if there is one.
func hashOf(config []byte, proxy []unstructured.Unstructured) string {
	hash := sha256.New()
	_, _ = hash.Write(config) // a hash takes everything
	for _, secret := range proxy {
		_, _ = fmt.Fprint(hash, secret.Object["data"])
	}
	return hex.EncodeToString(hash.Sum(nil))[:hashLength]
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
	if s.shared.ServiceAccount {
		return []unstructured.Unstructured{settings}, nil
	}
	credentials, err := addons.ManagedCredentials(credentialFiles(s.shared))
	return []unstructured.Unstructured{settings, credentials}, err
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
