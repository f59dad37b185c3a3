// SPDX-License-Identifier: Apache-2.0

package ccm

// Annotations of Services.
const (
	gatewayAnnotation = "service.beta.kubernetes.io/vcloud-gateway"
	addressAnnotation = "service.beta.kubernetes.io/vcloud-load-balancer-ip"
	sslPorts          = "service.beta.kubernetes.io/vcloud-avi-ssl-ports"
	sslAlias          = "service.beta.kubernetes.io/vcloud-avi-ssl-cert-alias"
	sslPassed         = "service.beta.kubernetes.io/vcloud-avi-ssl-no-termination"
	tlsSecret         = "service.beta.kubernetes.io/vcloud-tls-secret"
	shareKey          = "service.beta.kubernetes.io/vcloud-share-ip"
	internalOnly      = "service.beta.kubernetes.io/vcloud-internal"
	dryRun            = "service.beta.kubernetes.io/vcloud-dry-run"
)
