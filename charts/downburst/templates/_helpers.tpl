{{/* Name of every object: the release's, with the chart's unless the release has it already. */}}
{{- define "downburst.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the hub's pod; they never change. */}}
{{- define "downburst.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: hub
{{- end -}}

{{/* Labels of every object. */}}
{{- define "downburst.labels" -}}
{{ include "downburst.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Labels of a part beside the hub, which select its pods as well. */}}
{{- define "downburst.part-labels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* What the hub and the parts beside it are told alike: where ledger and brokers are, whether groups may be sent (the
     scheduler asks for that), and the operator's settings. */}}
{{- define "downburst.shared-environment" -}}
- name: DOWNBURST_NAME
  value: {{ .Values.hub.name | default (include "downburst.fullname" .) | quote }}
{{- if .Values.ledger.existingSecret }}
- name: DOWNBURST_LEDGER_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.ledger.existingSecret }}
      key: {{ .Values.ledger.urlKey }}
{{- end }}
{{- if .Values.kafka.servers }}
- name: DOWNBURST_KAFKA__SERVERS
  value: {{ .Values.kafka.servers | quote }}
- name: DOWNBURST_KAFKA__PREFIX
  value: {{ .Values.kafka.prefix | quote }}
- name: DOWNBURST_KAFKA__SECURITY
  value: {{ .Values.kafka.security | quote }}
- name: DOWNBURST_KAFKA__PRODUCTS
  value: {{ .Values.kafka.products | quote }}
- name: DOWNBURST_KAFKA__REPLICATION
  value: {{ .Values.kafka.replication | quote }}
{{- if .Values.kafka.saslUser }}
- name: DOWNBURST_KAFKA__SASL_MECHANISM
  value: {{ .Values.kafka.saslMechanism | quote }}
- name: DOWNBURST_KAFKA__SASL_USER
  value: {{ .Values.kafka.saslUser | quote }}
{{- end }}
{{- with .Values.kafka.passwordKey }}
- name: DOWNBURST_KAFKA__SASL_PASSWORD_FILE
  value: /etc/downburst/kafka/{{ . }}
{{- end }}
{{- with .Values.kafka.caKey }}
- name: DOWNBURST_KAFKA__CA_FILE
  value: /etc/downburst/kafka/{{ . }}
{{- end }}
{{- with .Values.kafka.certificateKey }}
- name: DOWNBURST_KAFKA__CERTIFICATE_FILE
  value: /etc/downburst/kafka/{{ . }}
{{- end }}
{{- with .Values.kafka.privateKeyKey }}
- name: DOWNBURST_KAFKA__KEY_FILE
  value: /etc/downburst/kafka/{{ . }}
{{- end }}
{{- end }}
- name: DOWNBURST_MULTICAST__ENABLED
  value: {{ or .Values.multicast.hostNetwork .Values.multicast.podNetwork | quote }}
- name: DOWNBURST_SCHEDULER__APART
  value: {{ gt (int .Values.scheduler.replicas) 0 | quote }}
- name: DOWNBURST_LATENCY_APART
  value: {{ gt (int .Values.latencyService.replicas) 0 | quote }}
- name: DOWNBURST_CIRCUITS__APART
  value: {{ gt (int .Values.circuitService.replicas) 0 | quote }}
- name: DOWNBURST_ALARMS__APART
  value: {{ gt (int .Values.alarmService.replicas) 0 | quote }}
{{- range $name, $value := .Values.hub.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* The mail server of alarms, for the one process that notifies receivers: hub or alarm service. */}}
{{- define "downburst.mail-environment" -}}
{{- if .Values.mail.existingSecret }}
- name: DOWNBURST_ALARMS__SMTP_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.mail.existingSecret }}
      key: {{ .Values.mail.urlKey }}
{{- end }}
{{- end -}}

{{/* Where the brokers' secret is mounted, and the volume itself. */}}
{{- define "downburst.kafka-mount" -}}
{{- if .Values.kafka.existingSecret }}
- name: kafka
  mountPath: /etc/downburst/kafka
  readOnly: true
{{- end }}
{{- end -}}
{{- define "downburst.kafka-volume" -}}
{{- if .Values.kafka.existingSecret }}
- name: kafka
  secret:
    secretName: {{ .Values.kafka.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{/* What every container has: the image, and its last sentence in the status of its pod. And what lets the kubelet pull. */}}
{{- define "downburst.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
terminationMessagePolicy: FallbackToLogsOnError
{{- end -}}
{{- define "downburst.pull-secrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* What the standard "restricted" asks of a pod and of its containers. */}}
{{- define "downburst.restricted-pod" -}}
runAsNonRoot: true
runAsUser: 7370
runAsGroup: 7370
fsGroup: 7370
seccompProfile:
  type: RuntimeDefault
{{- end -}}
{{- define "downburst.restricted-container" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* A container with a node: restricted, unless the node needs capabilities. Kubernetes hands these to root alone, and
     files of the volume belong to another user. */}}
{{- define "downburst.node-container" -}}
{{- if . -}}
runAsNonRoot: false
runAsUser: 0
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  add: {{ append . "DAC_OVERRIDE" | toJson }}
{{- else -}}
{{- include "downburst.restricted-container" . -}}
{{- end -}}
{{- end -}}

{{/* Where pods may run. */}}
{{- define "downburst.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* From where groups are sent, for hub and senders. */}}
{{- define "downburst.multicast-environment" -}}
{{- if .Values.multicast.hostNetwork }}
- name: DOWNBURST_MULTICAST__INTERFACE
  value: {{ .Values.multicast.interface | quote }}
{{- else if .Values.multicast.podNetwork }}
- name: DOWNBURST_MULTICAST__INTERFACE
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
{{- end }}
{{- end -}}
